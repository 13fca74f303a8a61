//! Builder methods that all offers and groups have in common: hooks, visibility rules, scopes and rate limits.

/// Gives a builder with a field `scope` the methods `around`, `visible_to`, `scopes` and `rate_limit`. The texts are for their doc comments: what it is,
/// and what hooks run around.
macro_rules! scoped {
    ($kind:ident, $it:literal, $calls:literal) => {
        impl $kind {
            #[doc = concat!("Runs a function around ", $calls, ".")]
            ///
            /// The server's hooks run first, then those of its groups, the outermost first, then its own; of those added in
            /// one place, the first is the outermost. All run before any parameter of the handler is taken. See
            /// [`Server::around`](crate::Server::around).
            pub fn around<F, Fut>(mut self, hook: F) -> Self
            where
                F: Fn($crate::server::CallInfo, $crate::server::Next) -> Fut + Send + Sync + 'static,
                Fut: Future<Output = $crate::server::Outcome> + Send + 'static,
            {
                self.scope.hooks.push($crate::server::hook::Hook::new(hook));
                self
            }

            #[doc = concat!("Shows ", $it, " only to callers for whom a rule holds.")]
            ///
            /// For others it does not exist: lists leave it out, a call or a completion of it is the error of an unknown name,
            /// and a subscription to it tells nothing. Several rules must all hold, those of its groups included. They run for
            /// every list, every call and every announced change, so they are quick: what takes time belongs in front of the
            /// server, which hands it over as an extension. A list with a rule in it is never cached for several users.
            pub fn visible_to(
                mut self,
                rule: impl Fn(&$crate::server::Viewer<'_>) -> bool + Send + Sync + 'static,
            ) -> Self {
                self.scope.add_rule(rule);
                self
            }

            #[doc = concat!("Lets only callers use ", $it, " whose access token has these scopes, besides those that the server needs.")]
            ///
            /// Any other gets HTTP 403 with a challenge that names them, before a handler runs, and can sign in for more
            /// (see `Authorize`). Scopes of groups are added up. On stdio and in process nothing checks tokens,
            /// and all callers have every scope; over HTTP without `Http::authorize`, none has.
            pub fn scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
                self.scope.add_needed(scopes);
                self
            }

            #[doc = concat!("Limits how often each principal may call ", $it, ".")]
            ///
            /// Several limits must all have room, those of the server and of its groups included; the server's is asked first,
            /// and its hooks run between. A limit of a group counts for each of its offers by itself. See
            /// [`RateLimit`](crate::RateLimit).
            pub fn rate_limit(mut self, limit: $crate::server::rate::RateLimit) -> Self {
                self.scope.limits.push(limit);
                self
            }
        }
    };
}

pub(super) use scoped;
