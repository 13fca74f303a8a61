//! Builder methods that all offers and groups have in common: hooks, visibility rules and rate limits.

/// Gives a builder with a field `scope` the methods `around`, `visible_to` and `rate_limit`. The texts are for their doc comments: what it is,
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
