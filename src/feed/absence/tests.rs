//! Windows as strings of letters, newest first, and what becomes of what is missing from them.
