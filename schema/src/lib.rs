//! OpenTSDB's tables on any store: codecs, UIDs, the series index.
