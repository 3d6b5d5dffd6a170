//! Buffers that share LDS: only while none of them holds data that somebody still reads, and wherever that is
//! so when they do not fit beside each other. The interpreter gives each buffer memory of its own.

use groundswell::prelude::*;
use groundswell_testing::judged::{assert_right, verified};

/// Compiles a kernel with schedules, checks the bytes of LDS, and compares it with the interpreter.
fn judge(text: &str, sizes: &[(&str, i64)], bytes: u32, schedules: &[Schedule]) {
    let kernel = Kernel::parse(text, "shared.gsw").expect("well-formed");
    let value = |symbol: Symbol| sizes.iter().find(|size| size.0 == symbol.name()).map(|size| size.1);
    for schedule in schedules {
        let options = Options::new(Target::GFX942).schedule(schedule.clone());
        let set = |options: Options, &(name, size)| options.set(Symbol::new(name), size);
        let options = sizes.iter().fold(options, set);
        let executable = verified(&kernel, &options);
        assert_eq!(executable.report().lds_bytes, bytes, "{}", schedule.name());
        assert_right(&kernel, &executable, &value, 3, format_args!("{}", schedule.name()));
    }
}

/// What lies in front of a loop is gone when it runs, and its hole in LDS is too small for the loop's own
/// where a small buffer that lives longer comes after it.
#[test]
fn small_buffers_leave_no_holes() {
    let text = "kernel sums {
      workgroup M, 64, 0
      mma 16x16
      tile K, 144
      m = memory [M, N] shared f32
      a = memory [M, K] shared bf16
      b = memory [K, N] shared bf16
      bias = memory [N] shared f32
      c = memory [M, N] global f32
      %v = read m
      %s = iterate K (%acc = %v) {
        %x = read a
        %y = read b
        %n = mma %x, %y, %acc
        yield %n
      }
      %w = read bias
      %z = add %s, %w
      write %z, c
    }";
    let schedules = [Schedule::None, Schedule::Prefetch, Schedule::Automatic];
    judge(text, &[("M", 64), ("N", 128), ("K", 472)], 56320, &schedules);
}

/// Four buffers that fit only in the order in which they are used.
#[test]
fn buffers_are_placed_in_the_order_in_which_they_live() {
    let text = "kernel frag {
        workgroup M, 64, 0
        wave M, 16
        x0 = memory [M, P0] global f32
        y0 = memory [M, P0] global f32
        x1 = memory [M, P1] global f32
        y1 = memory [M, P1] global f32
        x2 = memory [M, P2] global f32
        y2 = memory [M, P2] global f32
        x3 = memory [M, P3] global f32
        y3 = memory [M, P3] global f32
        %b0 = allocate [M, P0] f32
        %b1 = allocate [M, P1] f32
        %b2 = allocate [M, P2] f32
        %b3 = allocate [M, P3] f32
        %x3 = read x3
        write %x3, %b3
        %x1 = read x1
        write %x1, %b1
        %r1 = read %b1 at [M, P1 - 1] as [M, P1]
        write %r1, y1
        %x2 = read x2
        write %x2, %b2
        %r3 = read %b3 at [M, P3 - 1] as [M, P3]
        write %r3, y3
        %x0 = read x0
        write %x0, %b0
        %r0 = read %b0 at [M, P0 - 1] as [M, P0]
        write %r0, y0
        %r2 = read %b2 at [M, P2 - 1] as [M, P2]
        write %r2, y2
      }";
    judge(text, &[("M", 64), ("P0", 128), ("P1", 128), ("P2", 64), ("P3", 128)], 65536, &[Schedule::None]);
}

/// Three values that are read at coordinates, one after the other, under a condition and in a while loop that
/// a loop stands around: each may have the place of the one before, although nobody knows whether they are
/// there at all.
#[test]
fn what_may_not_run_shares_lds_too() {
    let three = "%t1 = tanh %b
        %u1 = read %t1 at [M, N - 1] as [M, N]
        %t2 = tanh %u1
        %u2 = read %t2 at [M, N - 2] as [M, N]
        %t3 = tanh %u2
        %u3 = read %t3 at [M, N - 3] as [M, N]";
    let condition = format!(
        "%large = compare gt %size, %none
        %z = conditional %large (%b = %y) {{
          {three}
          yield %u3
        }}"
    );
    let twice = format!(
        "%more = compare lt %none, %two
        _, %z = while %more (%trip = %none, %b = %y) {{
          {three}
          %one = constant 1
          %next = add %trip, %one
          %again = compare lt %next, %two
          yield %next, %u3, %again
        }}"
    );
    for inner in [condition, twice] {
        let text = format!(
            "kernel shared {{
              workgroup M, 64, 0
              tile J, 8
              wave M, 16
              wave N, 64
              x = memory [M, N] global f32
              g = memory [J] global f32
              out = memory [M, N] global f32
              %none = register [] i32 0
              %two = register [] i32 2
              %size = size M
              %x = read x
              %r = iterate J (%acc = %x) {{
                %g = read g
                %s = reduce_sum %g over J
                %y = mul %acc, %s
                {inner}
                yield %z
              }}
              write %r, out
            }}"
        );
        judge(&text, &[("M", 64), ("N", 128), ("J", 16)], 32768, &[Schedule::None]);
    }
}

/// A loop without a trip fills nothing: what the buffer held before it is still read after it, so nothing
/// that lives between may have its place.
#[test]
fn loops_without_trips_keep_what_there_was() {
    let text = "kernel zs {
        workgroup M, 64, 0
        tile J, 8
        tile K, 8
        tile L, 8
        iterations K, 0, 0
        wave M, 32
        x = memory [M, N] global f32
        g = memory [M, J] global f32
        h = memory [K] global f32
        l = memory [L] global f32
        out = memory [M, N] global f32
        %buf = allocate [M, N] f32
        %zero = register [M, N] f32 0.0
        %x = read x
        write %x, %buf
        %s = iterate L (%acc = %zero) {
          %ll = read l
          %ls = reduce_sum %ll over L
          %q = mul %x, %ls
          %t = tanh %q
          %big = read %t at [M, N - 2] as [M, N]
          %v = add %big, %acc
          yield %v
        }
        %r = iterate J (%acc = %s) {
          %kk = iterate K (%kacc = %zero) {
            %p = mul %x, 2.0
            write %p, %buf
            %hh = read h
            %hs = reduce_sum %hh over K
            %n = add %kacc, %hs
            yield %n
          }
          %b = read %buf at [M, N - 1] as [M, N]
          %gg = read g
          %gs = reduce_sum %gg over J
          %v = mul %b, %gs
          %v2 = add %v, %acc
          yield %v2
        }
        write %r, out
      }";
    let sizes = [("M", 64), ("N", 128), ("J", 16), ("K", 16), ("L", 16)];
    judge(text, &sizes, 65536, &[Schedule::None, Schedule::Prefetch, Schedule::Automatic]);
    // With a trip that is known, the value before is not needed.
    let filled = text.replace("iterations K, 0, 0", "iterations K, 0, 1");
    judge(&filled, &sizes, 32768, &[Schedule::None]);
}

/// Some trip of a loop may leave a buffer as the one before has filled it: what lives in front of that in the
/// loop may not have its place, if somebody reads the buffer after the loop.
#[test]
fn trips_that_fill_nothing_keep_what_those_before_left() {
    let text = "kernel kept {
      workgroup M, 64, 0
      tile J, 8
      tile K, 8
      iterations K, 0, 1 - iteration_J
      wave M, 32
      x = memory [M, N] global f32
      g = memory [J] global f32
      h = memory [K] global f32
      out = memory [M, N] global f32
      %buf = allocate [M, N] f32
      %x = read x
      %zero = register [M, N] f32 0.0
      %r = iterate J (%acc = %zero) {
        %gg = read g
        %gs = reduce_sum %gg over J
        %q = mul %x, %gs
        %t = tanh %q
        %big = read %t at [M, N - 2] as [M, N]
        %t2 = tanh %big
        %large = read %t2 at [M, N - 3] as [M, N]
        %kk = iterate K (%kacc = %zero) {
          %p = mul %x, 2.0
          write %p, %buf
          %hh = read h
          %hs = reduce_sum %hh over K
          %n = add %kacc, %hs
          yield %n
        }
        %v = add %large, %acc
        %w = add %v, %kk
        yield %w
      }
      %b = read %buf at [M, N - 1] as [M, N]
      %sum = add %r, %b
      write %sum, out
    }";
    // Two of three buffers of 32 KB share a place.
    judge(text, &[("M", 64), ("N", 96), ("J", 16), ("K", 16)], 65536, &[Schedule::None]);
}
