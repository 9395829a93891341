//! A majority of independent servers as one store: the register that they hold together, and the search for schedules in
//! which it loses a swap. No store is built on it yet.

mod register;
