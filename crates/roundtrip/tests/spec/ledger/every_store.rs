//! The tests of [`repeats`](super::repeats), for one store.

/// Makes a module with every test of `repeats`, each on a store that the expression opens. The expression may return early
/// to leave a test out.
macro_rules! on_every_store {
    ($module:ident, $store:expr) => {
        mod $module {
            use super::*;

            on_every_store! { @tests $store;
                a_lost_first_reply_is_sent_again
                lost_intermediate_and_final_replies_are_sent_again
                instances_that_share_a_ledger_share_replies
                concurrent_duplicates_run_once_and_share_the_reply
                failures_release_and_tool_errors_are_recorded
                every_method_that_may_ask_is_recorded
                a_key_stands_for_one_call
                a_reply_is_for_its_own_principal
                rounds_without_state_are_told_apart_by_their_answers
                a_refused_round_is_not_used_up
                a_round_that_settles_nothing_leaves_its_token_good
                a_round_that_began_a_step_or_kept_state_is_recorded
                a_dropped_run_releases_its_round
                a_round_with_a_step_outlives_its_client
                one_principal_does_not_fill_the_ledger
                a_ledger_full_of_bytes_refuses_new_rounds
            }
        }
    };
    (@tests $store:expr; $($test:ident)*) => {
        $(
            #[tokio::test]
            async fn $test() {
                repeats::$test($store).await;
            }
        )*
    };
}
