/* Groundswell for C and C++: kernels are compiled in the calling process, and launched on GPUs or the simulator.
   Link with -lgroundswell_c. Objects belong to the caller until they are given to their _free function, which may happen
   in any order. What fails returns NULL or a number that is not 0; groundswell_error() then has the text. */

#ifndef GROUNDSWELL_H
#define GROUNDSWELL_H

/* Made by cbindgen of c/src; c/tests/header.rs holds it. */

#include <stddef.h>
#include <stdint.h>

/*
 Memory of a device.
 */
typedef struct GroundswellBuffer GroundswellBuffer;

/*
 A device: a GPU, or the simulator.
 */
typedef struct GroundswellDevice GroundswellDevice;

/*
 A compiled kernel.
 */
typedef struct GroundswellExecutable GroundswellExecutable;

/*
 A kernel, with the schedule after its text and the defaults of its symbols, if it has any.
 */
typedef struct GroundswellKernel GroundswellKernel;

/*
 A launch that is being put together; it may run several times.
 */
typedef struct GroundswellLaunch GroundswellLaunch;

/*
 Options of a compilation.
 */
typedef struct GroundswellOptions GroundswellOptions;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 A buffer of so many bytes, whose contents are undefined.

 # Safety
 `device` is a device.
 */
struct GroundswellBuffer *groundswell_buffer_new(const struct GroundswellDevice *device, uint64_t bytes);

/*
 Declares what a buffer holds (`f16`, `bf16`, `f32`, ...), which launches then check.

 # Safety
 `buffer` is a buffer that nobody else uses meanwhile, and `dtype` ends with a zero byte.
 */
int groundswell_buffer_set_dtype(struct GroundswellBuffer *buffer, const char *dtype);

/*
 Writes bytes from the beginning of a buffer on.

 # Safety
 `buffer` is a buffer, and `bytes` bytes can be read at `from`.
 */
int groundswell_buffer_write(const struct GroundswellBuffer *buffer, const void *from, size_t bytes);

/*
 Reads bytes from the beginning of a buffer on.

 # Safety
 `buffer` is a buffer, and `bytes` bytes can be written at `to`.
 */
int groundswell_buffer_read(const struct GroundswellBuffer *buffer, void *to, size_t bytes);

/*
 Bytes of a buffer; 0 for NULL.

 # Safety
 `buffer` is a buffer, or NULL.
 */
uint64_t groundswell_buffer_bytes(const struct GroundswellBuffer *buffer);

/*
 The address of a buffer on its device; 0 for NULL.

 # Safety
 `buffer` is a buffer, or NULL.
 */
uint64_t groundswell_buffer_address(const struct GroundswellBuffer *buffer);

/*
 A buffer over the memory of a DLPack tensor (`DLManagedTensor *`): of the GPU, or of the host for the
 simulator. The tensor is released when the buffer has gone, and at once if this fails.

 # Safety
 `device` is a device, `tensor` is a tensor as DLPack describes it, which nobody else releases and whose
 memory nobody else uses while the device does, nor is it given to another function of this interface
 meanwhile. On the simulator the memory reaches to the end of its last word of four bytes.
 */
struct GroundswellBuffer *groundswell_buffer_from_dlpack(const struct GroundswellDevice *device,
                                                         void *tensor);

/*
 A DLPack tensor (`DLManagedTensor *`) of that shape over a buffer of a GPU, whose dtype was declared. It
 keeps the memory until its `deleter` is called.

 # Safety
 `buffer` is a buffer, and `shape` has `rank` numbers.
 */
void *groundswell_buffer_to_dlpack(const struct GroundswellBuffer *buffer, const size_t *shape, size_t rank);

/*
 Frees a buffer; launches that are under way keep what they need.

 # Safety
 `buffer` is a buffer that is freed once, or NULL.
 */
void groundswell_buffer_free(struct GroundswellBuffer *buffer);

/*
 Opens a device: `sim`, `sim:gfx950`, `hip`, `hip:1`, `auto`. With NULL the one that `GROUNDSWELL_DEVICE`
 names, or else the first GPU, or else the simulator.

 # Safety
 `name` ends with a zero byte, or is NULL.
 */
struct GroundswellDevice *groundswell_device_open(const char *name);

/*
 One line about a device for people; free it with `groundswell_string_free`.

 # Safety
 `device` is a device.
 */
char *groundswell_device_name(const struct GroundswellDevice *device);

/*
 The target to compile for, as `groundswell_options_new` takes it; free it with `groundswell_string_free`.

 # Safety
 `device` is a device.
 */
char *groundswell_device_target(const struct GroundswellDevice *device);

/*
 Whether a device is the simulator: 1 if it is, 0 if not.

 # Safety
 `device` is a device, or NULL.
 */
int groundswell_device_is_simulator(const struct GroundswellDevice *device);

/*
 Waits until everything that was enqueued has happened.

 # Safety
 `device` is a device.
 */
int groundswell_device_synchronize(const struct GroundswellDevice *device);

/*
 Frees a device; buffers on it keep what they need.

 # Safety
 `device` is a device that is freed once, or NULL.
 */
void groundswell_device_free(struct GroundswellDevice *device);

/*
 Compiles a kernel. What was compiled before is found in a cache.

 # Safety
 `kernel` is a kernel, and `options` are options.
 */
struct GroundswellExecutable *groundswell_compile(const struct GroundswellKernel *kernel,
                                                  const struct GroundswellOptions *options);

/*
 The code object of an executable, which is valid as long as the executable; its bytes go to `bytes`. NULL
 if that fails.

 # Safety
 `executable` is an executable, and `bytes` can be written.
 */
const uint8_t *groundswell_executable_object(const struct GroundswellExecutable *executable, size_t *bytes);

/*
 The compiler's report as JSON, with the kernel's name, target, block and arguments; free it with
 `groundswell_string_free`.

 # Safety
 `executable` is an executable.
 */
char *groundswell_executable_report(const struct GroundswellExecutable *executable);

/*
 The kernel as assembly text that LLVM takes; free it with `groundswell_string_free`.

 # Safety
 `executable` is an executable.
 */
char *groundswell_executable_assembly(const struct GroundswellExecutable *executable);

/*
 Frees an executable.

 # Safety
 `executable` is an executable that is freed once, or NULL.
 */
void groundswell_executable_free(struct GroundswellExecutable *executable);

/*
 The text of the last error of this thread, with its reason and a way out; empty if the last function that
 can fail worked. Functions that cannot (those that free something, the version, the bytes and the address
 of a buffer) leave it as it is. It is valid until the thread calls another function.
 */
const char *groundswell_error(void);

/*
 A kernel of a text, as `docs/language.md` describes it; a schedule may follow it. `file` is the name that
 errors and debuggers give the text.

 # Safety
 Both texts end with a zero byte.
 */
struct GroundswellKernel *groundswell_kernel_parse(const char *text, const char *file);

/*
 A ready kernel by its name (`gemm`, `softmax`, ...), whose inputs have a dtype, or the usual one if `dtype`
 is NULL. Its symbols have defaults.

 # Safety
 `name` ends with a zero byte, and so does `dtype` unless it is NULL.
 */
struct GroundswellKernel *groundswell_kernel_ready(const char *name, const char *dtype);

/*
 Whether a kernel has a symbol of that name: 1 if it has, 0 if not.

 # Safety
 `kernel` is a kernel, and `symbol` ends with a zero byte.
 */
int32_t groundswell_kernel_has_symbol(const struct GroundswellKernel *kernel, const char *symbol);

/*
 Frees a kernel.

 # Safety
 `kernel` is a kernel that is freed once, or NULL.
 */
void groundswell_kernel_free(struct GroundswellKernel *kernel);

/*
 A launch of an executable on a device. Both, and buffers that are added, are kept as long as it lives.

 # Safety
 `device` is a device, and `executable` is an executable.
 */
struct GroundswellLaunch *groundswell_launch_new(const struct GroundswellDevice *device,
                                                 const struct GroundswellExecutable *executable);

/*
 Adds the next buffer, in the order in which the kernel declares its memories.

 # Safety
 `launch` is a launch that nobody else uses meanwhile, and `buffer` is a buffer.
 */
int groundswell_launch_buffer(struct GroundswellLaunch *launch, const struct GroundswellBuffer *buffer);

/*
 Adds the next scalar, of f32, in the order in which the kernel declares its scalars.

 # Safety
 `launch` is a launch that nobody else uses meanwhile.
 */
int groundswell_launch_f32(struct GroundswellLaunch *launch, float value);

/*
 Adds the next scalar, of f64, in the order in which the kernel declares its scalars.

 # Safety
 `launch` is a launch that nobody else uses meanwhile.
 */
int groundswell_launch_f64(struct GroundswellLaunch *launch, double value);

/*
 Adds the next scalar, of i32, in the order in which the kernel declares its scalars.

 # Safety
 `launch` is a launch that nobody else uses meanwhile.
 */
int groundswell_launch_i32(struct GroundswellLaunch *launch, int32_t value);

/*
 Adds the next scalar, of i64, in the order in which the kernel declares its scalars.

 # Safety
 `launch` is a launch that nobody else uses meanwhile.
 */
int groundswell_launch_i64(struct GroundswellLaunch *launch, int64_t value);

/*
 Gives a symbol that was left open its value.

 # Safety
 `launch` is a launch that nobody else uses meanwhile, and `symbol` ends with a zero byte.
 */
int groundswell_launch_set(struct GroundswellLaunch *launch, const char *symbol, int64_t value);

/*
 Checks the arguments, runs the kernel and waits for its end.

 # Safety
 `launch` is a launch.
 */
int groundswell_launch_run(const struct GroundswellLaunch *launch);

/*
 Runs the kernel on the simulator with every step judged, in an order of waves that the seed decides: races,
 missing waits, accesses out of bounds. The report is JSON, whose `findings` are empty if all is well; free
 it with `groundswell_string_free`.

 # Safety
 `launch` is a launch.
 */
char *groundswell_launch_check(const struct GroundswellLaunch *launch, uint64_t seed);

/*
 Estimates on the simulator how long the launch takes on a chip. The report is JSON; free it with
 `groundswell_string_free`.

 # Safety
 `launch` is a launch.
 */
char *groundswell_launch_time(const struct GroundswellLaunch *launch);

/*
 Frees a launch.

 # Safety
 `launch` is a launch that is freed once, or NULL.
 */
void groundswell_launch_free(struct GroundswellLaunch *launch);

/*
 Options for a target: `gfx942`, `gfx950:xnack-`.

 # Safety
 `target` ends with a zero byte.
 */
struct GroundswellOptions *groundswell_options_new(const char *target);

/*
 Gives a symbol its value: a size, a tile.

 # Safety
 `options` are options that nobody else uses meanwhile, and `symbol` ends with a zero byte.
 */
int groundswell_options_set(struct GroundswellOptions *options, const char *symbol, int64_t value);

/*
 Leaves a symbol open until launch.

 # Safety
 As `groundswell_options_set`.
 */
int groundswell_options_dynamic(struct GroundswellOptions *options, const char *symbol);

/*
 Chooses how loops are scheduled: `none`, `prefetch`, `modulo`, `pingpong`, `auto` and so on, as the
 program's `--schedule`; `manual` is the schedule after the kernel's text.

 # Safety
 As `groundswell_options_set`.
 */
int groundswell_options_schedule(struct GroundswellOptions *options, const char *schedule);

/*
 Computes functions of floats with fewer instructions, and less exactly.

 # Safety
 As `groundswell_options_set`.
 */
int groundswell_options_fast_math(struct GroundswellOptions *options);

/*
 Frees options.

 # Safety
 `options` are options that are freed once, or NULL.
 */
void groundswell_options_free(struct GroundswellOptions *options);

/*
 The version of groundswell; it is valid for ever.
 */
const char *groundswell_version(void);

/*
 Frees a text that a function has returned; NULL is left alone.

 # Safety
 `text` comes from a function of this interface that says so, and is freed once.
 */
void groundswell_string_free(char *text);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* GROUNDSWELL_H */
