//! Rows of MIMG. The columns are explained in the table; an address has the least and the most registers that
//! LLVM's assembler takes for it (MIMGInstructions.td, `MIMG_NoSampler` and `MIMG_Sampler_AddrSizes`): how
//! many are read depends on the descriptor of the image.

macro_rules! image_rows {
    ([$next:ident $($rest:ident)*] $($rows:tt)*) => {
        $next! {
            [$($rest)*] $($rows)*
            ImageLoad "image_load" Mimg(0x00) [image_loaded(), image_address(1, 4), image_descriptor()] Vmem ImageLoad, on(TO_GFX90A);
            ImageLoadMip "image_load_mip" Mimg(0x01) [image_loaded(), image_address(1, 4), image_descriptor()] Vmem ImageLoad, on(TO_GFX90A);
            ImageLoadPck "image_load_pck" Mimg(0x02) [image_loaded(), image_address(1, 4), image_descriptor()] Vmem ImageLoadPacked, on(TO_GFX90A);
            ImageLoadPckSgn "image_load_pck_sgn" Mimg(0x03) [image_loaded(), image_address(1, 4), image_descriptor()] Vmem ImageLoadPacked, on(TO_GFX90A);
            ImageLoadMipPck "image_load_mip_pck" Mimg(0x04) [image_loaded(), image_address(1, 4), image_descriptor()] Vmem ImageLoadPacked, on(TO_GFX90A);
            ImageLoadMipPckSgn "image_load_mip_pck_sgn" Mimg(0x05) [image_loaded(), image_address(1, 4), image_descriptor()] Vmem ImageLoadPacked, on(TO_GFX90A);
            ImageStore "image_store" Mimg(0x08) [image_stored(), image_address(1, 4), image_descriptor()] Vmem ImageStore, on(TO_GFX90A);
            ImageStoreMip "image_store_mip" Mimg(0x09) [image_stored(), image_address(1, 4), image_descriptor()] Vmem ImageStore, on(TO_GFX90A);
            ImageStorePck "image_store_pck" Mimg(0x0a) [image_stored(), image_address(1, 4), image_descriptor()] Vmem ImageStorePacked, on(TO_GFX90A);
            ImageStoreMipPck "image_store_mip_pck" Mimg(0x0b) [image_stored(), image_address(1, 4), image_descriptor()] Vmem ImageStorePacked, on(TO_GFX90A);
            ImageGetResinfo "image_get_resinfo" Mimg(0x0e) [image_loaded(), image_address(1, 4), image_descriptor()] Vmem ImageQuery, on(TO_GFX90A);
            ImageAtomicSwap "image_atomic_swap" Mimg(0x10) [image_stored(), image_address(1, 4), image_descriptor()] Vmem ImageAtomic(Mov, B32), on(TO_GFX90A);
            ImageAtomicCmpswap "image_atomic_cmpswap" Mimg(0x11) [image_stored(), image_address(1, 4), image_descriptor()] Vmem ImageAtomic(CompareSwap, B32), on(TO_GFX90A);
            ImageAtomicAdd "image_atomic_add" Mimg(0x12) [image_stored(), image_address(1, 4), image_descriptor()] Vmem ImageAtomic(Add, U32), on(TO_GFX90A);
            ImageAtomicSub "image_atomic_sub" Mimg(0x13) [image_stored(), image_address(1, 4), image_descriptor()] Vmem ImageAtomic(Sub, U32), on(TO_GFX90A);
            ImageAtomicSmin "image_atomic_smin" Mimg(0x14) [image_stored(), image_address(1, 4), image_descriptor()] Vmem ImageAtomic(Min, I32), on(TO_GFX90A);
            ImageAtomicUmin "image_atomic_umin" Mimg(0x15) [image_stored(), image_address(1, 4), image_descriptor()] Vmem ImageAtomic(Min, U32), on(TO_GFX90A);
            ImageAtomicSmax "image_atomic_smax" Mimg(0x16) [image_stored(), image_address(1, 4), image_descriptor()] Vmem ImageAtomic(Max, I32), on(TO_GFX90A);
            ImageAtomicUmax "image_atomic_umax" Mimg(0x17) [image_stored(), image_address(1, 4), image_descriptor()] Vmem ImageAtomic(Max, U32), on(TO_GFX90A);
            ImageAtomicAnd "image_atomic_and" Mimg(0x18) [image_stored(), image_address(1, 4), image_descriptor()] Vmem ImageAtomic(And, B32), on(TO_GFX90A);
            ImageAtomicOr "image_atomic_or" Mimg(0x19) [image_stored(), image_address(1, 4), image_descriptor()] Vmem ImageAtomic(Or, B32), on(TO_GFX90A);
            ImageAtomicXor "image_atomic_xor" Mimg(0x1a) [image_stored(), image_address(1, 4), image_descriptor()] Vmem ImageAtomic(Xor, B32), on(TO_GFX90A);
            ImageAtomicInc "image_atomic_inc" Mimg(0x1b) [image_stored(), image_address(1, 4), image_descriptor()] Vmem ImageAtomic(IncrementWrap, U32), on(TO_GFX90A);
            ImageAtomicDec "image_atomic_dec" Mimg(0x1c) [image_stored(), image_address(1, 4), image_descriptor()] Vmem ImageAtomic(DecrementWrap, U32), on(TO_GFX90A);
            ImageSample "image_sample" Mimg(0x20) [image_loaded(), image_address(1, 4), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX90A);
            ImageSampleCl "image_sample_cl" Mimg(0x21) [image_loaded(), image_address(1, 4), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleD "image_sample_d" Mimg(0x22) [image_loaded(), image_address(2, 9), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleDCl "image_sample_d_cl" Mimg(0x23) [image_loaded(), image_address(2, 10), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleL "image_sample_l" Mimg(0x24) [image_loaded(), image_address(1, 4), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleB "image_sample_b" Mimg(0x25) [image_loaded(), image_address(2, 4), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleBCl "image_sample_b_cl" Mimg(0x26) [image_loaded(), image_address(2, 5), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleLz "image_sample_lz" Mimg(0x27) [image_loaded(), image_address(1, 4), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleC "image_sample_c" Mimg(0x28) [image_loaded(), image_address(2, 4), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleCCl "image_sample_c_cl" Mimg(0x29) [image_loaded(), image_address(2, 5), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleCD "image_sample_c_d" Mimg(0x2a) [image_loaded(), image_address(3, 10), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleCDCl "image_sample_c_d_cl" Mimg(0x2b) [image_loaded(), image_address(3, 11), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleCL "image_sample_c_l" Mimg(0x2c) [image_loaded(), image_address(2, 5), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleCB "image_sample_c_b" Mimg(0x2d) [image_loaded(), image_address(3, 5), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleCBCl "image_sample_c_b_cl" Mimg(0x2e) [image_loaded(), image_address(3, 6), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleCLz "image_sample_c_lz" Mimg(0x2f) [image_loaded(), image_address(2, 4), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleO "image_sample_o" Mimg(0x30) [image_loaded(), image_address(2, 4), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleClO "image_sample_cl_o" Mimg(0x31) [image_loaded(), image_address(2, 5), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleDO "image_sample_d_o" Mimg(0x32) [image_loaded(), image_address(3, 10), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleDClO "image_sample_d_cl_o" Mimg(0x33) [image_loaded(), image_address(3, 11), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleLO "image_sample_l_o" Mimg(0x34) [image_loaded(), image_address(2, 5), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleBO "image_sample_b_o" Mimg(0x35) [image_loaded(), image_address(3, 5), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleBClO "image_sample_b_cl_o" Mimg(0x36) [image_loaded(), image_address(3, 6), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleLzO "image_sample_lz_o" Mimg(0x37) [image_loaded(), image_address(2, 4), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleCO "image_sample_c_o" Mimg(0x38) [image_loaded(), image_address(3, 5), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleCClO "image_sample_c_cl_o" Mimg(0x39) [image_loaded(), image_address(3, 6), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleCDO "image_sample_c_d_o" Mimg(0x3a) [image_loaded(), image_address(4, 11), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleCDClO "image_sample_c_d_cl_o" Mimg(0x3b) [image_loaded(), image_address(4, 12), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleCLO "image_sample_c_l_o" Mimg(0x3c) [image_loaded(), image_address(3, 6), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleCBO "image_sample_c_b_o" Mimg(0x3d) [image_loaded(), image_address(4, 6), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleCBClO "image_sample_c_b_cl_o" Mimg(0x3e) [image_loaded(), image_address(4, 7), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleCLzO "image_sample_c_lz_o" Mimg(0x3f) [image_loaded(), image_address(3, 5), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageGather4 "image_gather4" Mimg(0x40) [image_loaded(), image_address(1, 4), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4Cl "image_gather4_cl" Mimg(0x41) [image_loaded(), image_address(1, 4), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4h "image_gather4h" Mimg(0x42) [image_loaded(), image_address(1, 4), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4L "image_gather4_l" Mimg(0x44) [image_loaded(), image_address(1, 4), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4B "image_gather4_b" Mimg(0x45) [image_loaded(), image_address(2, 4), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4BCl "image_gather4_b_cl" Mimg(0x46) [image_loaded(), image_address(2, 5), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4Lz "image_gather4_lz" Mimg(0x47) [image_loaded(), image_address(1, 4), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4C "image_gather4_c" Mimg(0x48) [image_loaded(), image_address(2, 4), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4CCl "image_gather4_c_cl" Mimg(0x49) [image_loaded(), image_address(2, 5), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4CL "image_gather4_c_l" Mimg(0x4c) [image_loaded(), image_address(2, 5), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4CB "image_gather4_c_b" Mimg(0x4d) [image_loaded(), image_address(3, 5), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4CBCl "image_gather4_c_b_cl" Mimg(0x4e) [image_loaded(), image_address(3, 6), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4CLz "image_gather4_c_lz" Mimg(0x4f) [image_loaded(), image_address(2, 4), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4O "image_gather4_o" Mimg(0x50) [image_loaded(), image_address(2, 4), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4ClO "image_gather4_cl_o" Mimg(0x51) [image_loaded(), image_address(2, 5), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4LO "image_gather4_l_o" Mimg(0x54) [image_loaded(), image_address(2, 5), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4BO "image_gather4_b_o" Mimg(0x55) [image_loaded(), image_address(3, 5), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4BClO "image_gather4_b_cl_o" Mimg(0x56) [image_loaded(), image_address(3, 6), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4LzO "image_gather4_lz_o" Mimg(0x57) [image_loaded(), image_address(2, 4), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4CO "image_gather4_c_o" Mimg(0x58) [image_loaded(), image_address(3, 5), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4CClO "image_gather4_c_cl_o" Mimg(0x59) [image_loaded(), image_address(3, 6), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4CLO "image_gather4_c_l_o" Mimg(0x5c) [image_loaded(), image_address(3, 6), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4CBO "image_gather4_c_b_o" Mimg(0x5d) [image_loaded(), image_address(4, 6), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4CBClO "image_gather4_c_b_cl_o" Mimg(0x5e) [image_loaded(), image_address(4, 7), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGather4CLzO "image_gather4_c_lz_o" Mimg(0x5f) [image_loaded(), image_address(3, 5), image_descriptor(), sampler()] Vmem ImageGather, on(TO_GFX908);
            ImageGetLod "image_get_lod" Mimg(0x60) [image_loaded(), image_address(1, 4), image_descriptor(), sampler()] Vmem ImageQuery, on(TO_GFX908);
            ImageSampleCd "image_sample_cd" Mimg(0x68) [image_loaded(), image_address(2, 9), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleCdCl "image_sample_cd_cl" Mimg(0x69) [image_loaded(), image_address(2, 10), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleCCd "image_sample_c_cd" Mimg(0x6a) [image_loaded(), image_address(3, 10), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleCCdCl "image_sample_c_cd_cl" Mimg(0x6b) [image_loaded(), image_address(3, 11), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleCdO "image_sample_cd_o" Mimg(0x6c) [image_loaded(), image_address(3, 10), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleCdClO "image_sample_cd_cl_o" Mimg(0x6d) [image_loaded(), image_address(3, 11), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleCCdO "image_sample_c_cd_o" Mimg(0x6e) [image_loaded(), image_address(4, 11), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
            ImageSampleCCdClO "image_sample_c_cd_cl_o" Mimg(0x6f) [image_loaded(), image_address(4, 12), image_descriptor(), sampler()] Vmem ImageSample, on(TO_GFX908);
        }
    };
}
