//! Limits of a client.

/// Limits of what a server can make a client do and keep. Past one of them the call ends with an error that names it
/// (Z2).
///
/// ```
/// use roundtrip::Client;
/// use roundtrip::client::ClientLimits;
///
/// # fn main() -> Result<(), roundtrip::Error> {
/// let mut limits = ClientLimits::default();
/// limits.list_pages = 50;
/// let client = Client::http("https://tools.example/mcp")?.limits(limits);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ClientLimits {
    /// Pages of one list. Default: 1,000.
    pub list_pages: usize,
    /// Entries of one list, all pages together. Default: 100,000.
    pub list_items: usize,
    /// Bytes of one list, all pages together. Default: 64 MiB.
    pub list_bytes: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self { list_pages: 1_000, list_items: 100_000, list_bytes: 64 * 1024 * 1024 }
    }
}
