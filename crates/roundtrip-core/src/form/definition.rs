//! A form's schema, with its JSON text and digest.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::check::validate;
use super::{Problems, packed};
use crate::wire::{ElicitSchema, JsonObject, Raw, RequestedSchema};

/// Domain separator of form digests; the number changes with the digested format.
const DOMAIN: &[u8] = b"roundtrip form 1\0";

/// A form's schema, its JSON text and a digest of that text.
///
/// All three are made once per form, so that asking a question that has been answered costs a comparison.
#[derive(Clone)]
pub struct Definition(Arc<Parts>);

struct Parts {
    schema: RequestedSchema,
    json: Arc<Raw>,
    digest: [u8; 16],
}

impl Definition {
    /// Serialises and digests a schema.
    #[expect(
        clippy::expect_used,
        reason = "the keys of a schema are strings, which is all that serialising can trip over"
    )]
    pub fn new(schema: ElicitSchema) -> Self {
        let (schema, json) = RequestedSchema::written(schema).expect("a schema serialises");
        let hash = Sha256::new_with_prefix(DOMAIN).chain_update(json.get()).finalize();
        let mut digest = [0; 16];
        digest.copy_from_slice(&hash[..16]);
        Self(Arc::new(Parts { schema, json, digest }))
    }

    /// Returns the schema.
    pub fn schema(&self) -> &ElicitSchema {
        &self.0.schema
    }

    /// Returns the schema as JSON text.
    pub fn json(&self) -> &Raw {
        &self.0.json
    }

    /// Returns the schema as a `requestedSchema`, sharing the text.
    pub fn requested(&self) -> &RequestedSchema {
        &self.0.schema
    }

    /// Returns a digest of the form, the same in every process that has the same form.
    pub fn digest(&self) -> [u8; 16] {
        self.0.digest
    }

    /// Checks content and writes it in the journal's packed format.
    ///
    /// # Errors
    /// Fails if it breaks the schema, with everything that is wrong.
    pub fn check_and_pack(&self, content: &JsonObject) -> Result<String, Problems> {
        validate(&self.0.schema, content)?;
        Ok(self.pack(content))
    }

    /// Writes content that fits the form in the journal's packed format: short, and read back without a check.
    pub fn pack(&self, content: &JsonObject) -> String {
        packed::pack(&self.0.schema, content)
    }

    /// Reads content that [`pack`](Self::pack) wrote, without fields that were left out.
    pub fn unpack(&self, packed: &str) -> JsonObject {
        packed::unpack(&self.0.schema, packed)
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Definition").field(self.json()).finish()
    }
}
