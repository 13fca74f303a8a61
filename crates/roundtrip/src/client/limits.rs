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
    /// Questions of one round. Default: 32. Checked before a handler is asked.
    pub questions: usize,
    /// Questions outside of any call that are with the handlers at the same time. Default: 32, and one more for each call
    /// under way, which may have asked it. Those beyond are refused, and the server is told.
    pub questions_outside_calls: usize,
    /// Bytes of a URL that people are sent to. Default: 8 KiB.
    pub url_bytes: usize,
    /// Bytes of all results in the cache. Default: 64 MiB.
    pub cache_bytes: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            list_pages: 1_000,
            list_items: 100_000,
            list_bytes: 64 * 1024 * 1024,
            questions: 32,
            questions_outside_calls: 32,
            url_bytes: 8 * 1024,
            cache_bytes: 64 * 1024 * 1024,
        }
    }
}
