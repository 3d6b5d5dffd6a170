//! LDS bank conflicts, computed from the addresses a wave presents.
//!
//! LDS serves the lanes of an access in groups; inside a group each bank serves one dword per cycle, and lanes that
//! read the same dword are served together. Which lanes form a group depends on target, width and direction.
/// stub
#[derive(Copy,Clone,PartialEq,Eq,Debug)] pub enum Access{Read,Write}
/// stub
pub struct LdsRules; impl LdsRules { pub const GFX942: LdsRules = LdsRules; }
/// stub
pub fn conflict_degree(_a:&[u32;64],_w:u32,_k:Access,_r:LdsRules)->u32{1}
