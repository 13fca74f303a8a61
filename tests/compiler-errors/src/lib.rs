//! Programs that do not compile, and what the compiler says about them.
