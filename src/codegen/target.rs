//! stub
/// stub
#[derive(Copy,Clone,PartialEq,Eq,Hash,Debug)] pub struct Target(u8);
impl Target { /// x
 pub const GFX942: Target = Target(0); /// x
 pub fn lds_bytes(self)->u32{65536} }
