//! The program as scripts see it: exit codes, JSON keys, files.

use crate::places::Directory;
use crate::program::{groundswell, json, text};
use serde_json::Value;

const SMALL: [&str; 9] = ["-s", "M=64", "-s", "N=33", "-s", "K=104", "--tile", "M=32,N=32,K=32", "--json"];

fn keys(value: &Value, keys: &[&str]) {
    for key in keys {
        assert!(value.get(key).is_some(), "no {key} in {value}");
    }
}

#[test]
fn list_names_the_kernels_with_their_symbols() {
    let (list, code) = json(&["list", "--json"]);
    assert_eq!(code, Some(0));
    let names: Vec<&str> =
        list["kernels"].as_array().unwrap().iter().map(|k| k["name"].as_str().unwrap()).collect();
    assert!(["copy", "gemm", "batched_gemm"].iter().all(|name| names.contains(name)), "{names:?}");
    let gemm = names.iter().position(|name| *name == "gemm").unwrap();
    assert_eq!(list["kernels"][gemm]["symbols"]["BLOCK_K"]["default"], 32);
    assert_eq!(list["kernels"][gemm]["waves"], serde_json::json!({ "M": 2, "N": 2 }));
    let softmax = names.iter().position(|name| *name == "softmax").unwrap();
    assert!(list["kernels"][softmax]["waves"].is_null());
    assert_eq!(groundswell(&["list"]).status.code(), Some(0));
}

#[test]
fn run_reports_the_promised_keys_and_holds() {
    let (report, code) = json(&[&["run", "gemm"], &SMALL[..]].concat());
    assert_eq!(code, Some(0), "{report}");
    #[rustfmt::skip]
    keys(&report, &[
        "kernel", "target", "compile_us", "phases_us", "instructions", "loop", "vgprs", "agprs", "sgprs", "lds_bytes",
        "scratch_bytes", "code_bytes", "waves_per_simd", "limited_by", "schedule", "launch", "check", "sim",
    ]);
    #[rustfmt::skip]
    keys(&report["loop"], &[
        "mfma", "valu", "salu", "lds_read", "lds_write", "global_load", "global_store", "wait", "nop", "barrier", "other",
    ]);
    keys(&report["launch"], &["grid", "block", "kernarg_bytes", "args"]);
    keys(&report["schedule"], &["requested", "applied", "why"]);
    keys(&report["check"], &["ok", "max_abs_err", "max_rel_err"]);
    assert_eq!(report["check"]["ok"], true);
    assert_eq!(report["launch"]["grid"], serde_json::json!([2, 2, 1]));
    assert!(report["phases_us"]["allocate"].as_f64().unwrap() > 0.0);
}

#[test]
fn run_takes_dtypes_instructions_waves_and_dynamic_sizes() {
    for more in [
        &["--dtype", "bf16", "--mma", "32x32", "--waves", "M=1,N=1"][..],
        &["--mma", "i32_16x16x32_i8"],
        &["--dynamic", "M,N,K", "--seed", "9"],
    ] {
        let (report, code) = json(&[&["run", "gemm"], &SMALL[..], more].concat());
        assert_eq!((code, &report["check"]["ok"]), (Some(0), &Value::Bool(true)), "{more:?}: {report}");
    }
    let (report, code) = json(&["run", "copy", "-s", "M=3", "-s", "N=5", "--json"]);
    assert_eq!((code, &report["loop"]), (Some(0), &Value::Null));
}

#[test]
fn schedules_are_chosen_and_the_report_says_what_was_applied_and_why() {
    let schedule = |more: &[&str]| {
        let (report, code) = json(&[&["run", "gemm"], &SMALL[..], more].concat());
        assert_eq!((code, &report["check"]["ok"]), (Some(0), &Value::Bool(true)), "{more:?}: {report}");
        report["schedule"].clone()
    };
    for name in ["prefetch", "four_stage"] {
        let expected = serde_json::json!({ "requested": name, "applied": name, "why": "", "choices": [] });
        assert_eq!(schedule(&["--schedule", name]), expected);
    }
    let modulo = schedule(&["--schedule", "modulo"]);
    assert_eq!(modulo["applied"], "none");
    assert!(modulo["why"].as_str().is_some_and(|why| why.ends_with("iterations, and it has 3")), "{modulo}");
    let four = schedule(&["--pingpong"]);
    assert_eq!((&four["requested"], &four["applied"]), (&"pingpong".into(), &"prefetch".into()));
    assert!(four["why"].as_str().is_some_and(|why| why.contains("4 waves")), "{four}");
    let (report, code) = json(&[&["run", "gemm", "--schedule", "modulo", "--pingpong"], &SMALL[..]].concat());
    assert_eq!(code, Some(2), "{report}");
    let chosen = schedule(&["--schedule", "auto"]);
    let candidates = chosen["choices"][0]["candidates"].as_array().expect("candidates");
    assert_eq!(candidates.len(), 9, "{chosen}");
    for candidate in candidates {
        assert_eq!(candidate["chosen"] == true, candidate["schedule"] == chosen["applied"], "{chosen}");
        assert!(candidate["clk"].is_u64() || candidate["refused"].is_string(), "{chosen}");
    }
}

#[test]
fn a_schedule_after_a_text_kernel_is_taken_when_it_is_asked_for() {
    let directory = Directory::new("cli_manual");
    let file = directory.file("manual.gsw");
    let kernel = std::fs::read_to_string("examples/gemm.gsw").unwrap();
    let schedule = "schedule nothing_new {\n  k_loop = get_node_by_tag \"k_loop\"\n}\n";
    std::fs::write(&file, format!("{kernel}\n{schedule}")).unwrap();
    let run = |file: &str| {
        let arguments = ["run", file, "--waves", "M=2,N=2", "--schedule", "manual"];
        json(&[&arguments[..], &SMALL[..]].concat())
    };
    let (report, code) = run(&file);
    assert_eq!((code, &report["check"]["ok"]), (Some(0), &Value::Bool(true)), "{report}");
    assert_eq!(report["schedule"]["requested"], "manual");
    let (report, code) = run("examples/gemm.gsw");
    assert_eq!(code, Some(1));
    assert_eq!(report["error"]["message"], "examples/gemm.gsw holds no schedule");
    std::fs::write(&file, format!("{kernel}\n{}", schedule.replace("\"k_loop\"", "\"kloop\""))).unwrap();
    let (report, code) = run(&file);
    assert_eq!(code, Some(1));
    assert_eq!(report["error"]["message"], "no node has the tag \"kloop\"");
    assert_eq!(report["error"]["location"]["line"], 1 + 2 + kernel.lines().count(), "{report}");
}

#[test]
fn schedules_are_written_drawn_and_read_back() {
    let directory = Directory::new("cli_schedule");
    let sizes = ["-s", "M=128", "-s", "N=128", "-s", "K=512", "--tile", "M=64,N=64,K=32"];
    let compile = |more: &[&str]| groundswell(&[&["compile", "gemm"], &sizes[..], more].concat());
    let modulo = ["--schedule", "modulo", "--emit"];
    for (emit, sign) in [
        ("graph", "loop 0 over K @k_loop"),
        ("dot", "digraph \"gemm\" {"),
        ("schedule", "  checks: machine\n"),
        ("operations", "  schedule_loop k_loop modulo\n"),
        ("timeline", "<title>Schedule of gemm</title>"),
        ("timeline", "<meta name=\"viewport\" content=\"width=device-width"),
        ("timeline", "@media (prefers-color-scheme: dark)"),
        ("machine", "v_mfma"),
        ("reasons", "; or: a register that `ds_read_"),
    ] {
        let file = directory.file(emit);
        let output = compile(&[&modulo[..], &[emit, "-o", &file]].concat());
        assert_eq!(output.status.code(), Some(0), "{emit}: {}", text(&output.stderr));
        let written = std::fs::read_to_string(&file).unwrap();
        assert!(written.contains(sign), "{emit}:\n{written}");
    }
    let table = directory.file("schedule");
    let loaded = compile(&["--schedule-file", &table, "--emit", "machine"]);
    assert_eq!(loaded.status.code(), Some(0), "{}", text(&loaded.stderr));
    assert_eq!(loaded.stdout, std::fs::read(directory.file("machine")).unwrap(), "the same code");
    let (report, code) = json(&[&["run", "gemm", "--schedule-file", &table, "--json"], &sizes[..]].concat());
    assert_eq!((code, &report["check"]["ok"]), (Some(0), &Value::Bool(true)), "{report}");
    let schedule = &report["schedule"];
    assert_eq!(
        (&schedule["requested"], &schedule["applied"]),
        (&Value::from("table"), &Value::from("table"))
    );

    let both = compile(&["--schedule-file", &table, "--schedule", "modulo"]);
    assert!(text(&both.stderr).contains("goes with neither"), "{}", text(&both.stderr));
    let none = compile(&["--schedule-file", &directory.file("none")]);
    assert!(text(&none.stderr).contains("cannot read"), "{}", text(&none.stderr));
    let written = std::fs::read_to_string(&table).unwrap();
    std::fs::write(&table, written.replace("interval: ", "intervall: ")).unwrap();
    let output = compile(&["--schedule-file", &table]);
    let people = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(people.contains("did you mean `interval`?") && people.contains("intervall:"), "{people}");
}

#[test]
fn a_text_kernel_runs() {
    let kernel = ["run", "examples/gemm.gsw", "--waves", "M=2,N=2"];
    let (report, code) = json(&[&kernel[..], &SMALL[..]].concat());
    assert_eq!((code, &report["check"]["ok"]), (Some(0), &Value::Bool(true)), "{report}");
    assert_eq!(report["kernel"], "gemm_bias");
    assert_eq!(report["symbols"]["WAVES_M"], 2);
}

#[test]
fn modes_of_the_target_reach_the_assembly() {
    let (report, code) = json(&["compile", "copy", "--target", "gfx942:xnack-:sramecc+", "--json"]);
    assert_eq!(code, Some(0), "{report}");
    let text = report["text"].as_str().unwrap_or_default();
    assert!(text.starts_with(".amdgcn_target \"amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-\"\n"), "{text}");
    assert!(text.contains("  .amdhsa_reserve_xnack_mask 0\n"), "{text}");
}

#[test]
fn a_text_with_mistakes_gets_each_with_its_line() {
    let directory = Directory::new("cli_mistakes");
    let file = directory.file("bad.gsw");
    std::fs::write(&file, "kernel bad {\n  a = memory [M, N] global f99\n  write %1, a\n}\n").unwrap();
    let (report, code) = json(&["run", &file, "--json"]);
    assert_eq!(code, Some(1));
    assert_eq!(report["error"]["location"]["line"], 2);
    let people = text(&groundswell(&["run", &file]).stderr);
    assert!(people.contains("memory [M, N] global f99"), "the line is shown in\n{people}");
}

#[test]
fn compile_writes_what_is_asked_for_and_disasm_reads_it() {
    let directory = Directory::new("cli_compile");
    let object = directory.file("gemm.hsaco");
    let (report, code) = json(&["compile", "gemm", "--emit", "object", "-o", &object, "--json"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["output_bytes"], std::fs::metadata(&object).unwrap().len());
    assert_eq!(directory.entries(), ["gemm.hsaco"], "no temporary file is left");

    let (listing, code) = json(&["disasm", &object, "--json"]);
    assert_eq!(code, Some(0));
    let kernel = &listing["kernels"][0];
    assert_eq!((&kernel["name"], &kernel["unknown"]), (&Value::from("gemm"), &Value::from(0)));
    assert_eq!(
        kernel["instructions"].as_array().map(Vec::len),
        report["instructions"].as_u64().map(|n| n as usize)
    );
    let people = text(&groundswell(&["disasm", &object]).stdout);
    assert!(people.contains("v_mfma_f32_16x16x16_f16"), "{people}");

    for (emit, sign) in [
        ("asm", ".amdhsa_kernel gemm"),
        ("ir", "mma f32_16x16x16_f16"),
        ("machine", "v_mfma_f32_16x16x16_f16"),
    ] {
        let output = groundswell(&["compile", "gemm", "--emit", emit]);
        assert_eq!(output.status.code(), Some(0), "{emit}");
        assert!(text(&output.stdout).contains(sign), "{emit}:\n{}", text(&output.stdout));
    }
    let piped = groundswell(&["compile", "gemm", "--emit", "object"]).stdout;
    assert_eq!(piped, std::fs::read(&object).unwrap(), "the same bytes in another process");
}

#[test]
fn asm_makes_of_disasm_what_it_was() {
    let directory = Directory::new("cli_asm");
    let (object, listing, again) = (directory.file("a.co"), directory.file("a.s"), directory.file("b.co"));
    groundswell(&["compile", "gemm", "--emit", "object", "-o", &object]);
    let printed = groundswell(&["disasm", &object]).stdout;
    assert_eq!(groundswell(&["disasm", &object, "-o", &listing]).stdout, b"");
    assert_eq!(std::fs::read(&listing).unwrap(), printed);
    assert_eq!(groundswell(&["disasm", &object, "-o", "-"]).stdout, printed);
    assert_eq!(groundswell(&["disasm", &object, "-o", &object]).status.code(), Some(2));
    let (report, code) = json(&["asm", &listing, "-o", &again, "--json"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!((&report["target"], &report["kernels"][0]), (&Value::from("gfx942"), &Value::from("gemm")));
    let bytes = std::fs::read(&again).unwrap();
    assert_eq!(
        (report["bytes"].as_u64(), &bytes),
        (Some(bytes.len() as u64), &std::fs::read(&object).unwrap())
    );
    let people = text(&groundswell(&["asm", &listing, "-o", &again]).stdout);
    assert!(people.contains("for gfx942, kernels gemm"), "{people}");

    let bad = directory.file("bad.s");
    std::fs::write(&bad, "s_nop 0\n  v_mov_b32 v0\n  frobnicate\n").unwrap();
    let output = groundswell(&["asm", &bad, "-o", &directory.file("bad.co"), "--target", "gfx942"]);
    assert_eq!(output.status.code(), Some(1));
    let people = text(&output.stderr);
    assert!(
        people.contains("v_mov_b32 v0") && people.contains("no instruction is called `frobnicate`"),
        "{people}"
    );
    let (report, code) =
        json(&["asm", &bad, "-o", &directory.file("bad.co"), "--target", "gfx942", "--json"]);
    assert_eq!(code, Some(1));
    let place = &report["error"]["location"];
    assert_eq!((&place["line"], &place["column"]), (&Value::from(2), &Value::from(15)), "{report}");
    assert_eq!(report["error"]["all"].as_array().map(Vec::len), Some(2));
    assert!(!directory.entries().contains(&"bad.co".to_owned()));
}

#[test]
fn failures_leave_no_file_and_no_changed_file() {
    let directory = Directory::new("cli_failures");
    let object = directory.file("kept");
    std::fs::write(&object, "before").unwrap();
    let output = groundswell(&["compile", "gemm", "--tile", "M=40", "-o", &object]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(std::fs::read(&object).unwrap(), b"before");
    let output = groundswell(&["compile", "gemm", "-o", &directory.file("no/such/place")]);
    assert_eq!(output.status.code(), Some(3));
    // A directory in the way.
    std::fs::create_dir(directory.file("taken")).unwrap();
    let output = groundswell(&["compile", "gemm", "-o", &directory.file("taken")]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(directory.entries(), ["kept", "taken"]);
}

#[test]
fn bench_tells_times_nodes_and_growth() {
    let (report, code) = json(&["bench", "copy", "gemm", "--json"]);
    assert_eq!(code, Some(0));
    let benches = report["benches"].as_array().unwrap();
    assert_eq!(benches.len(), 2);
    for bench in benches {
        keys(bench, &["kernel", "expanded_nodes", "compile_us", "cached_us", "phases_us", "growth"]);
        assert!(bench["cached_us"].as_f64() < bench["compile_us"].as_f64());
    }
    assert!(benches[1]["growth"]["nodes"].as_f64().unwrap() > 1.0);
}

/// What people want to know of a process that compiles its first kernel.
#[test]
fn bench_spreads_and_schedules_named_kernels_as_it_is_told() {
    let more = ["--tile", "M=64,N=64,K=32", "--waves", "M=2,N=2", "--schedule", "prefetch"];
    let (report, code) = json(&[&["bench", "gemm", "--json"], &more[..]].concat());
    assert_eq!(
        (code, &report["benches"][0]["kernel"]),
        (Some(0), &"gemm 64x64x32 prefetch".into()),
        "{report}"
    );
    let usual = json(&["bench", "gemm", "--json"]).0;
    assert_ne!(report["benches"][0]["expanded_nodes"], usual["benches"][0]["expanded_nodes"]);
    // The kernels that are measured when none is named have tiles and schedules of their own.
    assert_eq!(groundswell(&[&["bench"], &more[..2]].concat()).status.code(), Some(2));
}

/// What the program does with arguments and a text on standard input.
fn with_input(arguments: &[&str], input: &str) -> std::process::Output {
    use std::io::Write;
    use std::process::Stdio;
    let mut program = crate::program::command(arguments);
    program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = program.spawn().expect("the program was built for this test");
    // A program that refuses its arguments does not read.
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    child.wait_with_output().expect("it ends")
}

#[test]
fn a_kernel_comes_from_standard_input() {
    let directory = Directory::new("cli-stdin");
    let kernel = include_str!("../../examples/gemm.gsw");
    let built = directory.file("built");
    let sizes = ["-s", "M=64", "-s", "N=64", "-s", "K=64", "--tile", "M=32,N=32,K=32", "--waves", "M=1,N=1"];
    let named = [("run", "\"gemm_bias\""), ("compile", "\"gemm_bias\""), ("bench", "\"<stdin> ")];
    for (verb, name) in named {
        let verb = &[verb, "-", "--json"];
        let output = with_input(&[&verb[..], &sizes[..]].concat(), kernel);
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{verb:?}: {said}");
        assert!(said.contains(name), "{verb:?}: {said}");
    }
    let scale = "kernel scale {\n  workgroup 4096, 1024, 0\n  a = memory [4096] global f32\n  %x = read a\n  \
                 %y = mul %x, 2.0\n  write %y, a\n}\n";
    let output = with_input(&["build", "-", "-o", &built], scale);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(std::fs::read_to_string(format!("{built}/kernels.rs")).unwrap().contains("fn scale"));

    // A fault names the place; a second reader would find nothing; what is read may not be written.
    let output = with_input(&["run", "-"], &kernel.replace("mma %x", "mmma %x"));
    assert!(text(&output.stderr).contains("<stdin>:26:13"), "{}", text(&output.stderr));
    let output = with_input(&["bench", "-", "-", "-s", "M=64"], kernel);
    assert!(!output.status.success());
    let output = with_input(&[&["run", "-", "--schedule-file", "-"], &sizes[..]].concat(), kernel);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("can be read once"), "{}", text(&output.stderr));
    let file = directory.file("k.gsw");
    std::fs::write(&file, kernel).unwrap();
    let mut program = crate::program::command(&["compile", "-", "--emit", "asm", "-o", &file]);
    let output = program.stdin(std::fs::File::open(&file).unwrap()).output().unwrap();
    assert_eq!((output.status.code(), std::fs::read_to_string(&file).unwrap().as_str()), (Some(2), kernel));
}

#[test]
fn timing_alone_executes_and_compares_nothing() {
    let timed = |more: &[&str]| json(&[&["run", "gemm", "--time"], &SMALL[..], more].concat());
    let [(with, _), (alone, code)] = [timed(&[]), timed(&["--no-check"])];
    assert_eq!(code, Some(0), "{alone}");
    assert_eq!((&alone["sim"]["cycles"], &alone["launch"]), (&with["sim"]["cycles"], &with["launch"]));
    assert!(with["check"]["ok"] == true && with["sim"].get("executed").is_some(), "{with}");
    assert!(alone.get("check").is_none() && alone["sim"].get("executed").is_none(), "{alone}");
    let people = text(&groundswell(&["run", "gemm", "--time", "--no-check"]).stdout);
    assert!(people.contains("  estimated ") && !people.contains("interpreter"), "{people}");
    for wrong in [&["--no-check"][..], &["--no-check", "--time", "--check"]] {
        assert_eq!(groundswell(&[&["run", "gemm"], wrong].concat()).status.code(), Some(2), "{wrong:?}");
    }
    // One that needs minutes of the interpreter.
    let huge = ["-s", "M=4096", "-s", "N=4096", "-s", "K=4096"];
    let start = std::time::Instant::now();
    let output = groundswell(&[&["run", "gemm", "--time", "--no-check"], &huge[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(start.elapsed().as_secs() < 120, "{:?}", start.elapsed());
}

#[test]
fn attention_is_a_text_of_some_lines() {
    let sizes = ["-s", "H=2", "-s", "M=100", "-s", "N=192", "-s", "D=64", "--arg", "scale=0.18", "--check"];
    let (report, code) = json(&[&["run", "examples/attention.gsw", "--json"], &sizes[..]].concat());
    assert_eq!((code, &report["check"]["ok"]), (Some(0), &true.into()), "{report}");
    for dtype in ["f4e2m1", "f6e2m3", "f6e3m2", "f8e4m3fn"] {
        let sizes = ["-s", "M=64", "-s", "N=64", "-s", "K=256", "--target", "gfx950", "--dtype", dtype];
        let (report, code) = json(&[&["run", "gemm_mx", "--json"], &sizes[..]].concat());
        assert_eq!((code, &report["check"]["ok"]), (Some(0), &true.into()), "{dtype}: {report}");
    }
}

#[test]
fn bench_compiles_for_the_chip_that_is_named() {
    let of = |target: &[&str]| json(&[&["bench", "gemm", "--json"], target].concat()).0;
    let [usual, other] = [of(&[]), of(&["--target", "gfx906"])];
    assert_eq!((usual["target"].as_str(), other["target"].as_str()), (Some("gfx942"), Some("gfx906")));
    // A product without matrix instructions takes more of others.
    let instructions = |report: &Value| report["benches"][0]["instructions"].as_u64().expect("a number");
    assert!(instructions(&other) > 2 * instructions(&usual));
}

#[test]
fn bench_tells_what_the_first_compilation_of_a_process_costs() {
    let (report, _) = json(&["bench", "copy", "gemm", "--json"]);
    let first = &report["first_compile"];
    keys(first, &["kernel", "compile_us", "more_than_later_us"]);
    assert_eq!(first["kernel"], "copy");
    let [time, more] = ["compile_us", "more_than_later_us"].map(|key| first[key].as_f64().unwrap());
    let later = report["benches"][0]["compile_us"].as_f64().unwrap();
    assert!(more > 0.0 && (time - later - more).abs() < 0.2, "{report}");
    let text = groundswell(&["bench", "copy"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("first compile in this process (copy): "), "{text}");
}

#[test]
fn help_and_version_are_no_errors() {
    for arguments in [&["--help"][..], &["--version"], &["run", "--help"]] {
        assert_eq!(groundswell(arguments).status.code(), Some(0), "{arguments:?}");
    }
}

#[test]
fn sim_runs_a_code_object_with_files_as_buffers() {
    let directory = Directory::new("cli-sim");
    let [object, input, output] = ["copy.co", "in.bin", "out.bin"].map(|name| directory.file(name));
    let sizes = ["-s", "M=32", "-s", "N=256", "-s", "BLOCK_M=16", "-s", "BLOCK_N=256"];
    let (report, _) =
        json(&[&["compile", "copy", "--emit", "object", "-o", &object, "--json"][..], &sizes].concat());
    assert_eq!(report["output"], object.as_str());
    let data: Vec<u8> = (0..32 * 256 * 4).map(|i| (i * 7 % 251) as u8).collect();
    std::fs::write(&input, &data).expect("the directory can be written");
    let (first, second) = (format!("in:{input}"), format!("out:{output}:{}", data.len()));
    let (disassembled, _) = json(&["disasm", &object, "--json"]);
    assert_eq!(disassembled["kernels"][0]["name"], "copy");
    let arguments = [
        "sim", &object, "--kernel", "copy", "--grid", "2,1,1", "--block", "256,1,1", "--arg", &first,
        "--arg", &second,
    ];
    let (report, code) = json(&[&arguments[..], &["--json"]].concat());
    assert_eq!(code, Some(0), "{report}");
    keys(&report, &["kernel", "target", "launch", "outputs", "sim"]);
    assert!(report["sim"]["executed"]["instructions"].as_u64() > Some(0));
    assert!(std::fs::read(&output).expect("it was written") == data, "the copy differs");

    let refused = groundswell(&["sim", &object, "--arg", &first]);
    assert_eq!(refused.status.code(), Some(2));
    let message = text(&refused.stderr);
    assert!(message.contains("takes 2 arguments, 1 are given"), "{message}");
    let refused = groundswell(&["sim", &object, "--kernel", "paste"]);
    assert!(text(&refused.stderr).contains("there is no kernel `paste`"), "{}", text(&refused.stderr));
}

#[test]
fn sim_takes_structs_by_value() {
    let directory = Directory::new("cli-struct");
    let [source, object, output] = ["k.s", "k.co", "out.bin"].map(|name| directory.file(name));
    let assembly = ".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\n.text\n.globl k\n.p2align 8\n.type k,@function\nk:\n\
                s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_load_dwordx4 s[8:11], s[0:1], 0x8\nv_mov_b32_e32 v0, 0\n\
                s_waitcnt lgkmcnt(0)\ns_add_u32 s8, s8, s9\ns_add_u32 s8, s8, s10\nv_mov_b32_e32 v1, s8\n\
                global_store_dword v0, v1, s[4:5]\ns_endpgm\n.rodata\n.p2align 6\n.amdhsa_kernel k\n\
                .amdhsa_kernarg_size 24\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n.amdhsa_next_free_vgpr 4\n\
                .amdhsa_next_free_sgpr 16\n.amdhsa_accum_offset 4\n.end_amdhsa_kernel\n.amdgpu_metadata\n---\n\
                amdhsa.kernels:\n  - .args:\n      - {.address_space: global, .offset: 0, .size: 8, .value_kind: \
                global_buffer}\n      - {.offset: 8, .size: 16, .value_kind: by_value}\n    \
                .group_segment_fixed_size: 0\n    .kernarg_segment_align: 8\n    .kernarg_segment_size: 24\n    \
                .max_flat_workgroup_size: 64\n    .name: k\n    .private_segment_fixed_size: 0\n    \
                .sgpr_count: 16\n    .symbol: k.kd\n    .vgpr_count: 4\n    .wavefront_size: 64\n\
                amdhsa.target: amdgcn-amd-amdhsa--gfx942\namdhsa.version: [1, 2]\n...\n.end_amdgpu_metadata\n";
    std::fs::write(&source, assembly).expect("the directory can be written");
    let (_, code) = json(&["asm", &source, "-o", &object, "--json"]);
    assert_eq!(code, Some(0));
    let out = format!("out:{output}:4");
    let value = "hex:02000000030000000500000000000000";
    let (report, code) = json(&["sim", &object, "--arg", &out, "--arg", value, "--json"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(std::fs::read(&output).expect("it was written"), [10, 0, 0, 0]);
    let refused = groundswell(&["sim", &object, "--arg", &out, "--arg", "hex:0200"]);
    let message = text(&refused.stderr);
    assert!(message.contains("argument 2 has 2 bytes, the kernel takes 16 there"), "{message}");
}

#[test]
fn run_judges_and_times_what_it_runs() {
    let directory = Directory::new("cli-judged");
    let [trace, page] = ["trace.json", "page.html"].map(|name| directory.file(name));
    let ask = ["--check", "--time", "--seed", "3", "--trace", &trace, "--page", &page];
    let (report, code) = json(&[&["run", "gemm"][..], &SMALL, &ask].concat());
    assert_eq!(code, Some(0), "{report}");
    let sim = &report["sim"];
    keys(
        sim,
        &[
            "cycles",
            "cycles_per_iteration",
            "bound",
            "mfma_utilisation",
            "bank_conflicts",
            "findings",
            "seed",
        ],
    );
    assert_eq!(sim["findings"], serde_json::json!([]));
    assert!(sim["cycles"].as_f64() > Some(1000.0) && sim["mfma_utilisation"].as_f64() > Some(0.0), "{sim}");
    let trace = std::fs::read_to_string(&trace).expect("it was written");
    let trace: Value = serde_json::from_str(&trace).expect("a trace is JSON");
    assert!(trace["traceEvents"].as_array().is_some_and(|events| events.len() > 100));
    let page = std::fs::read_to_string(&page).expect("it was written");
    assert!(
        page.contains("v_mfma_f32_16x16x16_f16") && !page.contains("http://") && !page.contains("https://")
    );

    let output = groundswell(&["run", "gemm", "--time"]);
    let shown = text(&output.stdout);
    assert!(shown.contains("most expensive instructions") && shown.contains("waitcnt"), "{shown}");
    let refused = groundswell(&["run", "gemm", "--time", "--chip", "MI99"]);
    assert!(text(&refused.stderr).contains("MI300X (gfx942)"), "{}", text(&refused.stderr));
    let refused = groundswell(&["run", "gemm", "--clock", "1000"]);
    assert_eq!(refused.status.code(), Some(2), "a clock without --time");
}

/// Estimates are for the clock that the chip holds with busy matrix cores; others have words or are numbers.
#[test]
fn the_clock_of_an_estimate_is_told() {
    let time = |clock: &[&str]| {
        let ask = ["run", "copy", "--time", "--no-check", "--chip", "MI300X", "--json"];
        let (report, code) = json(&[&ask[..], clock].concat());
        assert_eq!(code, Some(0), "{report}");
        report["sim"]["time"].clone()
    };
    for (asked, megahertz, which) in [
        (&[][..], 1350.0, "sustained"),
        (&["--clock", "sustained"], 1350.0, "sustained"),
        (&["--clock", "greatest"], 2100.0, "greatest"),
        (&["--clock", "1000"], 1000.0, "given"),
    ] {
        let report = time(asked);
        let clock = &report["clock"];
        assert_eq!((clock["megahertz"].as_f64(), clock["which"].as_str()), (Some(megahertz), Some(which)));
        assert_eq!((clock["sustained"].as_f64(), clock["greatest"].as_f64()), (Some(1350.0), Some(2100.0)));
        let estimate = &report["estimate"];
        let microseconds = |value: &Value| value.as_f64().expect("a number");
        let [least, most] = [0, 1].map(|n| microseconds(&estimate["microseconds_at_other_clock"][n]));
        let own = microseconds(&estimate["microseconds"]);
        assert!(least < most && (own == least || own == most), "{report}");
    }
    let shown = groundswell(&["run", "copy", "--time", "--no-check", "--chip", "MI300X"]);
    let shown = text(&shown.stdout);
    assert!(shown.contains("at 1350 MHz (sustained)") && shown.contains("at 2100 MHz (greatest)"), "{shown}");
}

/// A kernel with one LDS race and one load that is not waited for.
const FAULTY: &str = r#"
    .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
    .text
    .globl faulty
    .p2align 8
    .type faulty,@function
faulty:
    s_load_dwordx2 s[2:3], s[0:1], 0x0
    v_and_b32_e32 v0, 0x3ff, v0
    v_lshlrev_b32_e32 v1, 2, v0
    v_xor_b32_e32 v2, 0x100, v1
    ds_write_b32 v1, v0
    s_waitcnt lgkmcnt(0)
    ds_read_b32 v3, v2
    global_store_dword v1, v3, s[2:3]
    s_endpgm
    .size faulty, . - faulty
    .rodata
    .p2align 6
    .amdhsa_kernel faulty
      .amdhsa_user_sgpr_kernarg_segment_ptr 1
      .amdhsa_group_segment_fixed_size 512
      .amdhsa_next_free_vgpr 4
      .amdhsa_next_free_sgpr 4
      .amdhsa_accum_offset 4
    .end_amdhsa_kernel
"#;

#[test]
fn sim_reports_findings_and_fails() {
    let directory = Directory::new("cli-findings");
    let [source, object, output] = ["f.s", "f.co", "out.bin"].map(|name| directory.file(name));
    std::fs::write(&source, FAULTY).expect("the directory can be written");
    json(&["asm", &source, "-o", &object, "--json"]);
    let out = format!("out:{output}:512");
    let sim = ["sim", &object, "--block", "128,1,1", "--arg", &out];
    let (report, code) = json(&[&sim[..], &["--check", "--json"]].concat());
    assert_eq!(code, Some(1), "{report}");
    let findings = report["sim"]["findings"].as_array().expect("a list");
    let said = findings.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    assert!(said.contains("race") && said.contains("ds_read_b32"), "{said}");
    assert!(said.contains("v3") && said.contains("global_store_dword"), "{said}");
    let shown = groundswell(&[&sim[..], &["--check"]].concat());
    assert_eq!(shown.status.code(), Some(1));
    let shown = text(&shown.stdout);
    assert!(shown.contains("race on LDS") && shown.contains("help:"), "{shown}");
    let (report, code) = json(&[&sim[..], &["--time", "--json"]].concat());
    assert_eq!(code, Some(0), "{report}");
    assert!(report["sim"]["cycles"].as_f64() > Some(100.0), "{report}");
}

#[test]
fn faults_of_ready_kernels_name_the_arguments() {
    let fault = |arguments: &[&str]| {
        let output = groundswell(&[&["compile", "gemm", "--emit", "asm"], arguments].concat());
        assert!(!output.status.success());
        text(&output.stderr)
    };
    assert_eq!(
        fault(&["--tile", "K=24"]),
        "error: a wave covers 24 elements of K, which is not a multiple of the 16 of F32_16x16x16_F16
  note: BLOCK_K = 24 is set by --tile K=24
  help: use a larger tile of K, fewer waves, or a smaller matrix instruction
"
    );
    let large = fault(&["-s", "BLOCK_M=4096", "--tile", "N=1024"]);
    for part in
        ["note: BLOCK_M = 4096 is set by -s BLOCK_M=4096", "note: BLOCK_N = 1024 is set by --tile N=1024"]
    {
        assert!(large.contains(part), "{large}");
    }
    assert!(large.contains("note: BLOCK_K = 32 is the default") && !large.contains("src/kernels"), "{large}");
}

#[test]
fn what_is_denied_is_an_error_that_names_it() {
    let outcome = |arguments: &[&str]| {
        let output = groundswell(&[&["compile", "--emit", "asm"], arguments].concat());
        (output.status.code(), text(&output.stderr))
    };
    let everything = "spills,bank-conflicts,split-accesses,unshared-reads,nondeterministic";
    assert_eq!(outcome(&["gemm", "--deny", everything]), (Some(0), String::new()));
    for (kernel, denied, expected) in [
        ("conv2d_nchw", "split-accesses", "the read of read_x moves 1 of 8 elements"),
        ("scatter_add", "spills,nondeterministic", "floats are added atomically"),
    ] {
        let (code, message) = outcome(&[kernel, "--deny", denied]);
        assert!(code == Some(1) && message.contains(expected), "{message}");
    }
    let (code, message) = outcome(&["gemm", "--deny", "conflicts"]);
    assert!(code == Some(2) && message.contains("bank-conflicts"), "{message}");
}

#[test]
fn compile_shows_ir_and_machine_code_after_a_pass() {
    let emitted = |emit: &str, pass: &str| {
        let output = groundswell(&["compile", "copy", "--emit", emit, "--after", pass]);
        assert_eq!(output.status.code(), Some(0), "{emit} after {pass}");
        text(&output.stdout)
    };
    assert!(!emitted("ir", "bind_symbols").contains("layout"));
    assert!(emitted("ir", "expand").contains("replica 3"));
    assert!(emitted("machine", "lower").contains("%0:s2"));
    let passes =
        ["allocate", "scratch", "drop_branches", "waits", "hazards"].map(|pass| emitted("machine", pass));
    for code in &passes {
        assert!(code.contains("s_load_dwordx2 s[4:5], s[0:1], 0x0") && !code.contains('%'), "{code}");
    }
    let [allocated, _, _, waited, _] = passes;
    assert!(!allocated.contains("s_waitcnt") && waited.contains("s_waitcnt lgkmcnt(0)"));
    for (emit, pass, reason) in [
        ("ir", "allocate", "bind_symbols, infer_types"),
        ("machine", "expand", "lower, interleave, allocate"),
        ("asm", "expand", "--emit ir and --emit machine"),
    ] {
        let output = groundswell(&["compile", "copy", "--emit", emit, "--after", pass]);
        assert_eq!(output.status.code(), Some(2), "{emit} after {pass}");
        assert!(text(&output.stderr).contains(reason), "{}", text(&output.stderr));
    }
}

/// What a search finds is written to a file that gives the same code.
#[test]
fn schedules_that_are_searched_read_back() {
    let directory = Directory::new("cli_searched");
    let sizes = ["-s", "M=128", "-s", "N=128", "-s", "K=512", "--tile", "M=64,N=64,K=32"];
    let compile = |more: &[&str]| groundswell(&[&["compile", "gemm"], &sizes[..], more].concat());
    let search = ["--schedule", "search", "--search-candidates", "20", "--emit"];
    let file = directory.file("best");
    let written = compile(&[&search[..], &["operations", "-o", &file]].concat());
    assert_eq!(written.status.code(), Some(0), "{}", text(&written.stderr));
    assert!(text(&written.stderr).contains("search: "), "{}", text(&written.stderr));
    let found = compile(&[&search[..], &["machine"]].concat());
    let loaded = compile(&["--schedule-file", &file, "--emit", "machine"]);
    assert_eq!(loaded.status.code(), Some(0), "{}", text(&loaded.stderr));
    assert_eq!(loaded.stdout, found.stdout, "the same code");

    let both = compile(&["--schedule-file", &file, "--schedule", "search"]);
    assert!(text(&both.stderr).contains("goes with neither"), "{}", text(&both.stderr));
    let two = compile(&["--schedule", "search", "--target", "gfx942,gfx950"]);
    assert!(text(&two.stderr).contains("takes one target"), "{}", text(&two.stderr));
    std::fs::write(&file, "schedule best {\n  tag_nodes \"a\" [\"loop.9\"]\n}\n").unwrap();
    let wrong = compile(&["--schedule-file", &file]);
    assert!(text(&wrong.stderr).contains("no operation `loop.9`"), "{}", text(&wrong.stderr));
    assert_eq!(wrong.status.code(), Some(1));
}
