//! Failures of the file.

use super::*;
