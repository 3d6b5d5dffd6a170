//! Tiles of matrix products with what they take on each chip: time mode's results for products of f16 with
//! results of f16, at the clock that the chip sustains. The test `sim_time_choices` writes the numbers
//! (`GROUNDSWELL_FIGURES=candidates`), compares some of them whenever it runs, and measures how far choices
//! are from the best candidate.
//!
//! Tiles and schedules are those of which one was among the fastest for some of 42 shapes (on MI50 and MI100
//! those of each size that are); schedules that take equally long stand once.

use crate::codegen::target::DeviceModel;
use crate::passes::options::Schedule;

/// A way to compute a tile, and its costs.
pub(super) struct Candidate {
    /// Rows of C.
    pub(super) m: u32,
    /// Columns of C.
    pub(super) n: u32,
    /// Bytes of a row of A that one step takes.
    pub(super) k_bytes: u32,
    /// Waves along its rows and columns.
    pub(super) waves: [u32; 2],
    /// How its loop is scheduled.
    pub(super) schedule: Schedule,
    /// Workgroups that fit on a compute unit at once.
    pub(super) resident: u32,
    /// One workgroup that has the chip to itself.
    pub(super) alone: Clocks,
    /// As many as fill the chip; a step is that of one of the workgroups of a compute unit, the time that it
    /// takes of the unit.
    pub(super) full: Clocks,
}

/// A line through the times of sums of 16 and of 48 steps, in clk.
#[derive(Copy, Clone)]
pub(super) struct Clocks {
    /// Before the first step and after the last one.
    pub(super) ends: u32,
    /// Of a step.
    pub(super) step: u32,
}

const fn row(
    [m, n, k_bytes]: [u32; 3],
    waves: [u32; 2],
    schedule: Schedule,
    resident: u32,
    alone: [u32; 2],
    full: [u32; 2],
) -> Candidate {
    let [alone, full] = [Clocks { ends: alone[0], step: alone[1] }, Clocks { ends: full[0], step: full[1] }];
    Candidate { m, n, k_bytes, waves, schedule, resident, alone, full }
}

/// Those of each of [`DeviceModel::ALL`], the smallest tile first.
pub(super) static OF_DEVICES: [&[Candidate]; DeviceModel::ALL.len()] = [MI50, MI100, MI210, MI300X, MI355X];

const MI50: &[Candidate] = &[
    row([16, 16, 128], [1, 1], Schedule::Prefetch, 4, [3848, 1274], [4671, 353]),
    row([16, 16, 256], [1, 1], Schedule::Prefetch, 4, [6044, 2193], [6044, 701]),
    row([16, 16, 512], [1, 1], Schedule::Modulo, 2, [9338, 7268], [9405, 3969]),
    row([16, 32, 256], [1, 2], Schedule::Modulo, 5, [5012, 4014], [5012, 1464]),
    row([32, 16, 256], [2, 1], Schedule::Modulo, 3, [5531, 3781], [8130, 1576]),
    row([32, 32, 256], [2, 2], Schedule::Modulo, 3, [5370, 3942], [5370, 2497]),
    row([32, 32, 512], [2, 2], Schedule::Prefetch, 1, [8674, 5317], [10158, 5347]),
    row([32, 64, 256], [2, 2], Schedule::Prefetch, 1, [7993, 4790], [9182, 4789]),
    row([32, 64, 512], [2, 2], Schedule::Modulo, 1, [17445, 12232], [17682, 14010]),
    row([64, 32, 256], [2, 2], Schedule::Prefetch, 1, [8204, 4747], [9793, 4747]),
    row([64, 64, 128], [2, 2], Schedule::Modulo, 3, [8195, 4561], [8195, 2884]),
    row([64, 64, 256], [2, 2], Schedule::Modulo, 2, [14954, 9129], [14954, 6869]),
    row([64, 128, 128], [2, 2], Schedule::Modulo, 2, [14512, 7807], [14512, 5774]),
    row([64, 128, 256], [2, 4], Schedule::Modulo, 1, [8343, 12907], [11897, 13713]),
    row([128, 64, 128], [2, 2], Schedule::Modulo, 2, [14041, 7952], [14041, 5876]),
    row([128, 64, 256], [4, 2], Schedule::Modulo, 1, [8480, 13135], [11481, 13991]),
    row([128, 128, 128], [2, 4], Schedule::Prefetch, 1, [7737, 10454], [12051, 10454]),
];

const MI100: &[Candidate] = &[
    row([16, 16, 128], [1, 1], Schedule::Modulo, 16, [2338, 292], [2338, 260]),
    row([16, 16, 256], [1, 1], Schedule::Modulo, 8, [2536, 580], [6767, 462]),
    row([16, 16, 512], [1, 1], Schedule::Modulo, 4, [3260, 1154], [3260, 817]),
    row([16, 32, 256], [1, 2], Schedule::Prefetch, 5, [1884, 1069], [2825, 877]),
    row([32, 16, 256], [2, 1], Schedule::Prefetch, 5, [1880, 1069], [1880, 770]),
    row([32, 32, 256], [2, 2], Schedule::Modulo, 2, [2516, 1036], [4140, 923]),
    row([32, 32, 512], [2, 2], Schedule::Prefetch, 2, [2352, 1858], [3953, 2166]),
    row([32, 64, 256], [2, 2], Schedule::Prefetch, 2, [2366, 1581], [3629, 1627]),
    row([32, 64, 512], [2, 2], Schedule::Prefetch, 1, [2710, 2915], [3295, 4570]),
    row([64, 32, 256], [2, 2], Schedule::Prefetch, 2, [2392, 1602], [4310, 1628]),
    row([64, 64, 128], [2, 2], Schedule::Interleaved, 4, [1546, 1453], [6042, 876]),
    row([64, 64, 256], [2, 2], Schedule::Interleaved, 2, [3280, 1984], [5816, 2167]),
    row([64, 128, 128], [2, 2], Schedule::Prefetch, 2, [3176, 1627], [6985, 1632]),
    row([64, 128, 256], [2, 4], Schedule::Prefetch, 1, [3324, 2965], [5227, 4422]),
    row([128, 64, 128], [2, 2], Schedule::Prefetch, 2, [3192, 1652], [7033, 1632]),
    row([128, 64, 256], [4, 2], Schedule::Prefetch, 1, [3310, 2965], [5271, 4420]),
    row([128, 128, 128], [2, 4], Schedule::Modulo, 2, [3212, 2404], [10977, 2782]),
    row([128, 256, 128], [2, 4], Schedule::Prefetch, 1, [3137, 5648], [11950, 6607]),
    row([256, 128, 128], [4, 2], Schedule::Prefetch, 1, [3133, 5648], [11896, 6607]),
    row([256, 256, 128], [2, 4], Schedule::PingPong, 1, [9288, 9242], [24825, 11589]),
];

const MI210: &[Candidate] = &[
    row([16, 16, 128], [1, 1], Schedule::Modulo, 16, [2267, 304], [4750, 141]),
    row([16, 16, 256], [1, 1], Schedule::Modulo, 8, [2411, 604], [3250, 275]),
    row([16, 16, 512], [1, 1], Schedule::Prefetch, 4, [2563, 1172], [3884, 395]),
    row([16, 32, 128], [1, 2], Schedule::Prefetch, 10, [1855, 777], [2900, 226]),
    row([16, 32, 256], [1, 2], Schedule::Modulo, 5, [2715, 570], [2750, 452]),
    row([32, 16, 128], [2, 1], Schedule::Prefetch, 10, [1855, 777], [4336, 222]),
    row([32, 16, 256], [2, 1], Schedule::Modulo, 3, [2737, 584], [3470, 463]),
    row([16, 64, 128], [1, 4], Schedule::Modulo, 6, [3099, 358], [4367, 371]),
    row([32, 32, 256], [2, 2], Schedule::Modulo, 2, [2961, 562], [3676, 602]),
    row([32, 32, 512], [2, 2], Schedule::Modulo, 1, [3019, 1165], [3782, 1265]),
    row([32, 64, 256], [2, 2], Schedule::Modulo, 2, [3350, 867], [3947, 890]),
    row([32, 64, 512], [2, 2], Schedule::Modulo, 1, [3120, 1975], [3592, 2135]),
    row([64, 32, 256], [2, 2], Schedule::Modulo, 1, [3173, 843], [4185, 922]),
    row([64, 64, 128], [2, 2], Schedule::Interleaved, 4, [2698, 780], [5837, 621]),
    row([64, 64, 128], [2, 2], Schedule::Modulo, 4, [2693, 707], [7223, 613]),
    row([64, 64, 256], [2, 4], Schedule::Modulo, 1, [3277, 1208], [4416, 1209]),
    row([64, 128, 128], [2, 4], Schedule::PingPong, 2, [3683, 1196], [7086, 1088]),
    row([64, 128, 256], [2, 4], Schedule::Interleaved, 1, [5365, 2277], [6564, 2482]),
    row([128, 64, 128], [4, 2], Schedule::PingPong, 2, [3687, 1196], [7570, 1097]),
    row([128, 64, 256], [4, 2], Schedule::Interleaved, 1, [5411, 2276], [6406, 2493]),
    row([96, 96, 128], [2, 2], Schedule::Interleaved, 2, [4875, 1245], [11921, 1233]),
    row([96, 128, 128], [2, 2], Schedule::Interleaved, 2, [4845, 1634], [10539, 1642]),
    row([96, 128, 128], [2, 4], Schedule::Interleaved, 2, [4121, 1571], [10321, 1539]),
    row([96, 128, 128], [2, 4], Schedule::PingPong, 2, [4335, 1619], [5936, 1602]),
    row([128, 96, 128], [2, 2], Schedule::Interleaved, 2, [5259, 1635], [13469, 1641]),
    row([128, 96, 128], [4, 2], Schedule::Interleaved, 2, [3963, 1678], [11039, 1670]),
    row([128, 96, 128], [4, 2], Schedule::PingPong, 2, [4655, 1614], [7597, 1639]),
    row([128, 128, 128], [2, 4], Schedule::Quadrants, 2, [4369, 2048], [12561, 2044]),
    row([128, 192, 128], [2, 4], Schedule::PingPong, 1, [6289, 3081], [12747, 3107]),
    row([192, 128, 128], [4, 2], Schedule::PingPong, 1, [5820, 3079], [10687, 3106]),
    row([160, 192, 128], [2, 4], Schedule::PingPong, 1, [8211, 3838], [16730, 3837]),
    row([192, 160, 128], [4, 2], Schedule::PingPong, 1, [7989, 3841], [16400, 3844]),
    row([128, 256, 128], [2, 4], Schedule::Quadrants, 1, [6014, 4097], [13441, 4098]),
    row([256, 128, 128], [4, 2], Schedule::Quadrants, 1, [5912, 4096], [13207, 4097]),
    row([192, 192, 128], [2, 4], Schedule::PingPong, 1, [8777, 4610], [18812, 4617]),
    row([192, 256, 128], [2, 4], Schedule::Quadrants, 1, [7198, 6141], [18111, 6142]),
    row([256, 192, 128], [4, 2], Schedule::Quadrants, 1, [7127, 6147], [22633, 6142]),
    row([224, 256, 128], [2, 4], Schedule::PingPong, 1, [9628, 7167], [22061, 7160]),
    row([256, 256, 128], [2, 4], Schedule::PingPong, 1, [6965, 8193], [21037, 8191]),
];

const MI300X: &[Candidate] = &[
    row([16, 16, 128], [1, 1], Schedule::Modulo, 16, [2421, 214], [2749, 100]),
    row([16, 16, 256], [1, 1], Schedule::Modulo, 8, [2567, 408], [2773, 213]),
    row([16, 16, 512], [1, 1], Schedule::Modulo, 4, [2959, 875], [3278, 400]),
    row([16, 32, 256], [1, 2], Schedule::Modulo, 5, [2723, 544], [2723, 313]),
    row([32, 16, 256], [2, 1], Schedule::Modulo, 3, [2791, 546], [3160, 301]),
    row([32, 32, 256], [2, 2], Schedule::Modulo, 2, [2527, 528], [2737, 420]),
    row([32, 32, 512], [2, 2], Schedule::Modulo, 1, [2717, 937], [4073, 942]),
    row([32, 64, 256], [2, 2], Schedule::Modulo, 2, [2641, 781], [3393, 606]),
    row([32, 64, 512], [2, 2], Schedule::Modulo, 1, [3161, 1326], [3881, 1468]),
    row([64, 32, 256], [2, 2], Schedule::Modulo, 1, [2757, 805], [3656, 809]),
    row([64, 32, 512], [2, 2], Schedule::Modulo, 1, [2555, 2158], [2849, 2530]),
    row([64, 64, 128], [2, 2], Schedule::Interleaved, 4, [2453, 629], [4236, 415]),
    row([64, 64, 256], [2, 2], Schedule::Interleaved, 2, [3311, 971], [5022, 806]),
    row([64, 128, 128], [2, 2], Schedule::Interleaved, 2, [3425, 813], [6071, 679]),
    row([64, 128, 256], [2, 4], Schedule::Interleaved, 1, [3557, 1610], [5163, 1609]),
    row([128, 64, 128], [2, 2], Schedule::Interleaved, 2, [3397, 815], [5565, 677]),
    row([128, 64, 256], [4, 2], Schedule::Interleaved, 1, [3561, 1610], [5093, 1609]),
    row([96, 96, 128], [2, 2], Schedule::Interleaved, 2, [4035, 845], [8068, 664]),
    row([96, 128, 128], [2, 2], Schedule::Interleaved, 2, [3875, 1021], [7168, 860]),
    row([128, 96, 128], [2, 2], Schedule::Interleaved, 2, [4935, 994], [9561, 855]),
    row([128, 128, 128], [2, 4], Schedule::Interleaved, 2, [3869, 1173], [8849, 1082]),
    row([128, 192, 128], [2, 4], Schedule::Interleaved, 1, [5381, 1613], [10212, 1626]),
    row([192, 128, 128], [4, 2], Schedule::Interleaved, 1, [4653, 1617], [8817, 1620]),
    row([160, 192, 128], [2, 4], Schedule::Interleaved, 1, [5649, 2038], [12187, 2034]),
    row([192, 160, 128], [4, 2], Schedule::Interleaved, 1, [5779, 2027], [11863, 2028]),
    row([128, 256, 128], [2, 4], Schedule::Interleaved, 1, [4829, 2130], [10883, 2123]),
    row([256, 128, 128], [4, 2], Schedule::Interleaved, 1, [4825, 2130], [10427, 2133]),
    row([192, 192, 128], [2, 4], Schedule::Interleaved, 1, [6211, 2387], [13679, 2380]),
    row([192, 256, 128], [2, 4], Schedule::Quadrants, 1, [5967, 3079], [14574, 3076]),
    row([256, 192, 128], [4, 2], Schedule::Quadrants, 1, [6297, 3080], [14258, 3080]),
    row([224, 256, 128], [2, 4], Schedule::PingPong, 1, [8837, 3588], [17926, 3626]),
    row([256, 224, 128], [4, 2], Schedule::PingPong, 1, [10367, 3581], [21234, 3605]),
    row([256, 256, 128], [2, 4], Schedule::Quadrants, 1, [7043, 4094], [17937, 4098]),
];

const MI355X: &[Candidate] = &[
    row([16, 16, 128], [1, 1], Schedule::Modulo, 16, [5555, 205], [5555, 87]),
    row([16, 16, 256], [1, 1], Schedule::Modulo, 16, [3183, 400], [3183, 180]),
    row([16, 16, 512], [1, 1], Schedule::Modulo, 9, [3201, 795], [3201, 363]),
    row([16, 32, 256], [1, 2], Schedule::Modulo, 8, [2521, 532], [2521, 291]),
    row([16, 32, 512], [1, 2], Schedule::Prefetch, 6, [2177, 1450], [5338, 587]),
    row([32, 16, 256], [2, 1], Schedule::Modulo, 8, [2641, 530], [2641, 293]),
    row([32, 16, 512], [2, 1], Schedule::Prefetch, 6, [2177, 1450], [2177, 611]),
    row([32, 32, 256], [2, 2], Schedule::Modulo, 4, [6855, 411], [6855, 378]),
    row([32, 32, 512], [2, 2], Schedule::Modulo, 4, [4411, 723], [4464, 743]),
    row([32, 64, 256], [2, 2], Schedule::Modulo, 3, [3430, 637], [5078, 577]),
    row([32, 64, 512], [1, 4], Schedule::Modulo, 3, [4479, 1080], [5810, 1107]),
    row([64, 32, 256], [2, 2], Schedule::Modulo, 3, [4089, 644], [5035, 583]),
    row([64, 64, 128], [2, 2], Schedule::Modulo, 4, [6733, 450], [6917, 386]),
    row([64, 64, 256], [2, 2], Schedule::Modulo, 3, [5092, 776], [5879, 750]),
    row([64, 128, 128], [2, 2], Schedule::Interleaved, 2, [5662, 622], [6847, 578]),
    row([64, 128, 256], [2, 4], Schedule::Modulo, 1, [5461, 1087], [6298, 1100]),
    row([128, 64, 128], [2, 2], Schedule::Interleaved, 2, [5542, 621], [6555, 573]),
    row([128, 64, 256], [4, 2], Schedule::Modulo, 1, [5401, 1082], [6536, 1100]),
    row([96, 96, 128], [2, 2], Schedule::Interleaved, 2, [6171, 604], [6703, 593]),
    row([96, 128, 128], [2, 2], Schedule::Modulo, 2, [9160, 705], [11242, 635]),
    row([128, 96, 128], [2, 2], Schedule::Interleaved, 1, [6731, 688], [8507, 708]),
    row([128, 128, 128], [2, 4], Schedule::Interleaved, 1, [5839, 755], [7892, 785]),
    row([128, 192, 128], [4, 2], Schedule::Interleaved, 1, [7269, 967], [9863, 979]),
    row([192, 128, 128], [2, 4], Schedule::Interleaved, 1, [7651, 954], [10019, 969]),
    row([160, 192, 128], [2, 4], Schedule::Interleaved, 1, [7997, 1568], [11384, 1567]),
    row([192, 160, 128], [4, 2], Schedule::Interleaved, 1, [7611, 1673], [10629, 1675]),
    row([128, 256, 128], [2, 4], Schedule::PingPong, 1, [6907, 1198], [10296, 1201]),
    row([256, 128, 128], [4, 2], Schedule::Interleaved, 1, [7750, 1184], [11214, 1200]),
    row([192, 192, 128], [2, 4], Schedule::Interleaved, 1, [9215, 1254], [13454, 1257]),
    row([192, 256, 128], [2, 4], Schedule::PingPong, 1, [6563, 1570], [11410, 1574]),
    row([256, 192, 128], [4, 2], Schedule::PingPong, 1, [6263, 1589], [11118, 1584]),
    row([224, 256, 128], [2, 4], Schedule::PingPong, 1, [6147, 2682], [11715, 2680]),
    row([256, 256, 128], [2, 4], Schedule::PingPong, 1, [7424, 2073], [13684, 2075]),
];
