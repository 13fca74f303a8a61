//! A form's schema with what is computed from it once.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::check::validate;
use super::{Problems, packed};
use crate::wire::{ElicitSchema, JsonObject, Raw, RequestedSchema};

/// Sets these digests apart from any other; the number changes with what is digested.
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

    /// The schema.
    pub fn schema(&self) -> &ElicitSchema {
        &self.0.schema
    }

    /// The schema as it goes over the wire.
    pub fn json(&self) -> &Raw {
        &self.0.json
    }

    /// The schema as a question has it, which shares all this.
    pub fn requested(&self) -> &RequestedSchema {
        &self.0.schema
    }

    /// What tells this form from any other: the same in every process that has the same form.
    pub fn digest(&self) -> [u8; 16] {
        self.0.digest
    }

    /// Checks content, and writes it as it is remembered.
    ///
    /// # Errors
    /// When it breaks the schema, with everything that is wrong.
    pub fn check_and_pack(&self, content: &JsonObject) -> Result<String, Problems> {
        validate(&self.0.schema, content)?;
        Ok(self.pack(content))
    }

    /// Writes content that fits the form as it is remembered: short, and read back without a check.
    pub fn pack(&self, content: &JsonObject) -> String {
        packed::pack(&self.0.schema, content)
    }

    /// The content that [`pack`](Self::pack) wrote: what the form asks for, without what was left out.
    pub fn unpack(&self, packed: &str) -> JsonObject {
        packed::unpack(&self.0.schema, packed)
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Definition").field(self.json()).finish()
    }
}
