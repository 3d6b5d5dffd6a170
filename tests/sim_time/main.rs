//! Time mode against measurements of others, its pictures, and what is chosen by it.

mod sampled;
mod sim_time;
mod sim_time_choices;
mod sim_time_grid;
mod sim_time_loops;
mod sim_time_measured;
mod sim_time_pictures;
mod tuning;
