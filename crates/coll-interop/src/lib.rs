//! Schedules of other tools, brought in as plans and written out of them.
