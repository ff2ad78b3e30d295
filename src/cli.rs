//! t
pub mod demo {
    pub mod blog;
}
