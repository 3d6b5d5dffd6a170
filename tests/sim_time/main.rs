//! Time mode against measurements of others, and its pictures.

mod sim_time;
mod sim_time_grid;
mod sim_time_loops;
mod sim_time_measured;
mod sim_time_pictures;
