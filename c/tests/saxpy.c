/* y = alpha * x + y through the C interface, and what it says of mistakes. */
#include "groundswell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 300

static const char *const TEXT =
    "kernel saxpy {\n"
    "  workgroup M, 64, 0\n"
    "  wave M, 64\n"
    "  x = memory [M] global f32\n"
    "  y = memory [M] global f32\n"
    "  alpha = scalar f32\n"
    "  %x = read x\n"
    "  %y = read y\n"
    "  %scaled = mul %x, alpha\n"
    "  %sum = add %scaled, %y\n"
    "  write %sum, y\n"
    "}\n";

static void expect(int holds, const char *what)
{
    if (!holds) {
        printf("%s: %s\n", what, groundswell_error());
        exit(1);
    }
}

/* The last call failed, and its text has a word. */
static void failed(int has_failed, const char *word)
{
    if (!has_failed || strstr(groundswell_error(), word) == NULL) {
        printf("not an error with `%s`: %s\n", word, groundswell_error());
        exit(1);
    }
}

int main(void)
{
    GroundswellDevice *device = groundswell_device_open(NULL);
    expect(device != NULL, "device");
    char *target = groundswell_device_target(device);
    GroundswellKernel *kernel = groundswell_kernel_parse(TEXT, "saxpy.gsw");
    expect(kernel != NULL && groundswell_kernel_has_symbol(kernel, "M"), "kernel");
    GroundswellOptions *options = groundswell_options_new(target);
    expect(options != NULL && groundswell_options_dynamic(options, "M") == 0, "options");
    expect(groundswell_options_schedule(options, "none") == 0, "schedule");
    GroundswellExecutable *executable = groundswell_compile(kernel, options);
    expect(executable != NULL, "compile");
    size_t bytes = 0;
    const uint8_t *object = groundswell_executable_object(executable, &bytes);
    expect(bytes > 1000 && memcmp(object, "\177ELF", 4) == 0, "object");
    char *report = groundswell_executable_report(executable);
    expect(report != NULL && strstr(report, "\"vgprs\"") != NULL, "report");
    char *assembly = groundswell_executable_assembly(executable);
    expect(assembly != NULL && strstr(assembly, "s_endpgm") != NULL, "assembly");

    float x[COUNT], y[COUNT];
    for (int at = 0; at < COUNT; ++at) {
        x[at] = (float)at;
        y[at] = 1.0f;
    }
    GroundswellBuffer *on_device[2] = {groundswell_buffer_new(device, sizeof(x)), groundswell_buffer_new(device, sizeof(y))};
    expect(groundswell_buffer_write(on_device[0], x, sizeof(x)) == 0, "write");
    expect(groundswell_buffer_write(on_device[1], y, sizeof(y)) == 0, "write");
    expect(groundswell_buffer_set_dtype(on_device[0], "f32") == 0, "dtype");
    expect(groundswell_buffer_bytes(on_device[0]) == sizeof(x) && groundswell_buffer_address(on_device[0]) != 0, "buffer");
    GroundswellLaunch *launch = groundswell_launch_new(device, executable);
    for (int at = 0; at < 2; ++at)
        expect(groundswell_launch_buffer(launch, on_device[at]) == 0, "buffer");
    failed(groundswell_launch_run(launch), "no value for M");
    expect(groundswell_launch_set(launch, "M", COUNT) == 0, "arguments");
    failed(groundswell_launch_run(launch), "alpha");
    expect(groundswell_launch_f32(launch, 2.0f) == 0, "arguments");
    expect(groundswell_launch_run(launch) == 0, "run");
    expect(groundswell_buffer_read(on_device[1], y, sizeof(y)) == 0, "read");
    for (int at = 0; at < COUNT; ++at)
        expect(y[at] == 2.0f * (float)at + 1.0f, "result");
    if (groundswell_device_is_simulator(device)) {
        char *findings = groundswell_launch_check(launch, 7);
        expect(findings != NULL && strstr(findings, "\"findings\":[]") != NULL, "check");
        char *time = groundswell_launch_time(launch);
        expect(time != NULL && strstr(time, "\"estimate\"") != NULL, "time");
        groundswell_string_free(findings);
        groundswell_string_free(time);
    }
    expect(groundswell_device_synchronize(device) == 0, "synchronize");

    /* Mistakes are texts. */
    failed(groundswell_kernel_parse("kernel k {\n  %x = raed a\n}\n", "k.gsw") == NULL, "k.gsw:2");
    failed(groundswell_kernel_parse(NULL, "k.gsw") == NULL, "NULL");
    failed(groundswell_kernel_parse("\xff", "k.gsw") == NULL, "UTF-8");
    failed(groundswell_kernel_ready("gem", NULL) == NULL, "gemm");
    failed(groundswell_kernel_ready("gemm", "f17") == NULL, "f17");
    failed(groundswell_options_new("gfx1100") == NULL, "gfx1100");
    failed(groundswell_options_schedule(options, "fast"), "pingpong");
    failed(groundswell_options_schedule(options, "table"), "no schedule is called `table`");
    failed(groundswell_options_set(NULL, "M", 1), "NULL");
    failed(groundswell_compile(kernel, NULL) == NULL, "NULL");
    failed(groundswell_device_open("gpu") == NULL, "hip:1");
    failed(groundswell_buffer_read(on_device[0], y, sizeof(y) + 1), "has no 1201");
    failed(groundswell_buffer_write(on_device[0], x, sizeof(x) + 1), "do not fit");
    failed(groundswell_buffer_set_dtype(on_device[0], "f33"), "f33");
    failed(groundswell_buffer_to_dlpack(on_device[0], NULL, 1) == NULL, "NULL");
    failed(groundswell_buffer_from_dlpack(device, NULL) == NULL, "NULL");
    failed(groundswell_launch_set(launch, "M", COUNT + 1) == 0 && groundswell_launch_run(launch), "twice");
    failed(groundswell_executable_object(NULL, &bytes) == NULL, "the executable");
    failed(groundswell_executable_object(executable, NULL) == NULL, "the place");
    expect(groundswell_version()[0] != 0, "version");

    GroundswellKernel *gemm = groundswell_kernel_ready("gemm", "bf16");
    GroundswellOptions *usual = groundswell_options_new(target);
    expect(groundswell_options_set(usual, "K", 64) == 0 && groundswell_options_fast_math(usual) == 0, "options");
    GroundswellExecutable *product = groundswell_compile(gemm, usual);
    expect(product != NULL && groundswell_error()[0] == 0, "gemm");
    groundswell_options_set(usual, "block_m", 64);
    failed(groundswell_compile(gemm, usual) == NULL, "no symbol `block_m`; its symbols are");

    /* In an order in which nobody would. */
    groundswell_device_free(device);
    groundswell_kernel_free(kernel);
    groundswell_kernel_free(gemm);
    groundswell_executable_free(executable);
    groundswell_executable_free(product);
    groundswell_buffer_free(on_device[0]);
    groundswell_options_free(options);
    groundswell_options_free(usual);
    groundswell_launch_free(launch);
    groundswell_buffer_free(on_device[1]);
    groundswell_string_free(target);
    groundswell_string_free(report);
    groundswell_string_free(assembly);
    groundswell_string_free(NULL);
    groundswell_kernel_free(NULL);
    printf("good\n");
    return 0;
}
