//! Workgroups on several threads of the host see 64 bits that others store at once as a whole, as on
//! hardware.

use groundswell::prelude::*;
use groundswell::simulator::{LaunchConfig, Simulator};
use groundswell_testing::by_hand;

/// Workgroups of even numbers store numbers in both halves of a place; the others look at it and count how
/// often the halves differ.
fn halves_that_differ(target: Target, store: &str, look: &str) -> u32 {
    let code = format!(
        "s_load_dwordx2 s[4:5], s[0:1], 0x0
v_mov_b32_e32 v1, 0
v_mov_b32_e32 v6, 0
v_mov_b32_e32 v7, 0
s_mov_b32 s8, 0
s_mov_b64 exec, 1
s_waitcnt lgkmcnt(0)
s_and_b32 s9, s2, 1
s_cmp_lg_u32 s9, 0
s_cbranch_scc1 looks
stores:
v_mov_b32_e32 v2, s8
v_mov_b32_e32 v3, s8
{store}
s_add_u32 s8, s8, 1
s_cmp_lg_u32 s8, 0x8000
s_cbranch_scc1 stores
s_endpgm
looks:
{look}
s_waitcnt vmcnt(0)
v_cmp_ne_u32_e32 vcc, v2, v3
s_and_b64 vcc, vcc, exec
s_cbranch_vccz alike
v_mov_b32_e32 v4, 1
global_atomic_add v1, v4, s[4:5] offset:8
alike:
s_add_u32 s8, s8, 1
s_cmp_lg_u32 s8, 0x8000
s_cbranch_scc1 looks
s_endpgm"
    );
    let object = by_hand::object(target.name, &code, &[".amdhsa_kernarg_size 8"]);
    let mut simulator = Simulator::new(target);
    let module = simulator.load(&object).expect("an object for the target");
    let address = simulator.alloc(16).expect("little memory");
    simulator.write(address, &[0; 16]).expect("inside");
    let config = LaunchConfig::new([16, 1, 1], [64, 1, 1]);
    simulator.launch(&module, "k", config, &address.to_le_bytes()).expect("it ends");
    u32::from_le_bytes(simulator.read(address + 8, 4).expect("inside").try_into().expect("four bytes"))
}

#[test]
fn pairs_that_are_stored_at_once_are_seen_at_once() {
    for (target, agent, returns) in [(Target::GFX942, " sc1", " sc0"), (Target::GFX90A, "", " glc")] {
        let stores = [
            "global_atomic_swap_x2 v1, v[2:3], s[4:5]".to_owned(),
            format!("global_store_dwordx2 v1, v[2:3], s[4:5]{agent}"),
        ];
        let bypasses = if agent.is_empty() { " glc" } else { agent };
        let looks = [
            format!("global_load_dwordx2 v[2:3], v1, s[4:5]{bypasses}"),
            format!("global_atomic_add_x2 v[2:3], v1, v[6:7], s[4:5]{returns}"),
        ];
        for store in &stores {
            for look in &looks {
                assert_eq!(halves_that_differ(target, store, look), 0, "{target}: {store}, {look}");
            }
        }
    }
}
