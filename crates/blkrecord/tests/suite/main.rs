//! Tests of the formats: what each means, that damage is reported with its place, and that nothing panics.

mod blktrace_formats;
mod damage;
mod limits;
mod own_format;
mod samples;
mod text_formats;
