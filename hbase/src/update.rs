//! Changes that read first: counters, appends, changes on a condition.

use basalt_store::{
    Append, CheckAndMutate, Comparator, Error as StoreError, Increment, Result, TableName, check_row_key,
};
use bytes::{Bytes, BytesMut};

use crate::cells::{Cell, Cells};
use crate::cluster::Cluster;
use crate::error::Error;
use crate::exception::Exception;
use crate::filter::comparator;
use crate::locations::Region;
use crate::multi::of_result;
use crate::pb::client::{
    APPEND, ColumnValue, Condition, INCREMENT, MultiRequest, MultiResponse, MutateRequest, MutateResponse,
    MutationProto, QualifierValue, RegionAction,
};
use crate::region_call::{RegionCall, Repeat};
use crate::request::{durability, turned};
use crate::write::push_actions;

/// HBase's number of "is equal".
const EQUAL: i32 = 2;

impl Cluster {
    /// Adds to a counter, once: a server knows a repeated call by its nonce, and answers what is there. Where the region is at
    /// another server since, a call that may have been done is not repeated: its outcome is unknown.
    ///
    /// # Errors
    /// As [`basalt_store::Store::increment`]'s.
    pub(crate) async fn increment(&self, table: &TableName, asked: &Increment) -> Result<i64> {
        let value = Bytes::copy_from_slice(&asked.amount.to_be_bytes());
        let column = (&asked.family, &asked.qualifier, value);
        let durability = durability(asked.durability, &self.options);
        let cell = self.mutate(table, &asked.row, mutation(INCREMENT, column, durability)).await;
        let value = cell.map_err(not_a_counter)?.value;
        let value: [u8; 8] = value[..].try_into().map_err(|_| StoreError::NotACounter { length: value.len() })?;
        Ok(i64::from_be_bytes(value))
    }

    /// Appends to a value, once, as [`Cluster::increment`].
    ///
    /// # Errors
    /// As [`basalt_store::Store::append`]'s.
    pub(crate) async fn append(&self, table: &TableName, asked: &Append) -> Result<Bytes> {
        let column = (&asked.family, &asked.qualifier, asked.value.clone());
        let durability = durability(asked.durability, &self.options);
        Ok(self.mutate(table, &asked.row, mutation(APPEND, column, durability)).await?.value)
    }

    async fn mutate(&self, table: &TableName, row: &Bytes, mutation: MutationProto) -> Result<Cell> {
        check_row_key(row)?;
        let mutation = MutationProto { row: Some(row.clone()), nonce: Some(Self::nonce()), ..mutation };
        let call = RegionCall {
            method: "Mutate",
            repeat: Repeat::WhereAsked,
            cells: Bytes::new(),
            ask: |region: &Region| MutateRequest {
                region: region.specifier(),
                mutation: mutation.clone(),
                nonce_group: Some(self.nonce_group),
            },
            refusal: |_: &MutateResponse| None,
        };
        let (told, block) = self.call_region((table, row), call).await?;
        let mut cells = of_result(told.result, &mut Cells(block))?;
        Ok(cells.pop().ok_or_else(|| Error::malformed("a change's answer", "it has no cell"))?)
    }

    /// Changes a row on a condition. A call whose end is not known is not sent again.
    ///
    /// # Errors
    /// As [`basalt_store::Store::check_and_mutate`]'s.
    pub(crate) async fn check_and_mutate(&self, table: &TableName, asked: &CheckAndMutate) -> Result<bool> {
        let row = asked.changes()?;
        let (mut action, mut block) = (Vec::new(), BytesMut::new());
        push_actions(&row, durability(asked.mutation.durability(), &self.options), &mut action, &mut block)?;
        let condition = condition(asked)?;
        let call = RegionCall {
            method: "Multi",
            repeat: Repeat::IfNotBegun,
            cells: block.freeze(),
            ask: |region: &Region| MultiRequest {
                region_action: vec![RegionAction {
                    region: region.specifier(),
                    atomic: Some(true),
                    action: action.clone(),
                }],
                nonce_group: None,
                condition: Some(condition.clone()),
            },
            refusal: |told: &MultiResponse| {
                told.region_action_result.iter().find_map(|one| one.exception.as_ref()).map(Exception::of_action)
            },
        };
        let (told, _) = self.call_region((table, &asked.row), call).await?;
        Ok(told.processed.ok_or_else(|| Error::malformed("a condition's answer", "it says neither yes nor no"))?)
    }
}

fn mutation(kind: i32, (family, qualifier, value): (&Bytes, &Bytes, Bytes), durability: i32) -> MutationProto {
    let value = QualifierValue { qualifier: Some(qualifier.clone()), value: Some(value) };
    MutationProto {
        mutate_type: Some(kind),
        column_value: vec![ColumnValue { family: family.clone(), qualifier_value: vec![value] }],
        durability: Some(durability),
        ..MutationProto::default()
    }
}

/// HBase takes an empty expected value for none, as our contract does.
fn condition(asked: &CheckAndMutate) -> Result<Condition> {
    let compare_type = if asked.expected.is_some() { turned(asked.comparison) } else { EQUAL };
    let expected = Comparator::Binary(asked.expected.clone().unwrap_or_default());
    Ok(Condition {
        row: asked.row.clone(),
        family: Some(asked.family.clone()),
        qualifier: Some(asked.qualifier.clone()),
        compare_type: Some(compare_type),
        comparator: Some(comparator(&expected)?),
    })
}

/// HBase says it in words: `Field is not a long, it's 3 bytes wide`.
fn not_a_counter(error: StoreError) -> StoreError {
    let words = error.to_string();
    let Some((_, wide)) = words.split_once("not a long, it's ") else { return error };
    let length = wide.split(' ').next().and_then(|digits| digits.parse().ok());
    length.map_or(error, |length| StoreError::NotACounter { length })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pb::rpc::ExceptionResponse;

    #[test]
    fn s_cnt_3_hbases_words_for_what_is_no_counter_are_understood() {
        let told = ExceptionResponse {
            exception_class_name: Some("org.apache.hadoop.hbase.DoNotRetryIOException".to_owned()),
            stack_trace: Some(
                "org.apache.hadoop.hbase.DoNotRetryIOException: Field is not a long, it's 3 bytes wide".to_owned(),
            ),
            do_not_retry: Some(true),
        };
        let error = not_a_counter(Error::from(Exception::of_call(&told)).into());
        assert!(matches!(error, StoreError::NotACounter { length: 3 }), "{error}");
    }
}
