//! What a wide-column store is: the contract, the retention rules, the reference store.
