-- +goose Up
-- By which version of the aggregation a price was made, when it was written (log time, Unix nanoseconds; 0 in rows of
-- earlier versions), and how long each input counts after it was last heard (nanoseconds; 0 where the version does not ask).
ALTER TABLE prices
    ADD COLUMN IF NOT EXISTS method UInt32 DEFAULT 1 AFTER simulated,
    ADD COLUMN IF NOT EXISTS published Int64 DEFAULT 0 AFTER method,
    ADD COLUMN IF NOT EXISTS inputs.fresh_for Array(Int64) DEFAULT arrayResize(emptyArrayInt64(), length(inputs.provider)) AFTER inputs.basis;

-- +goose Down
ALTER TABLE prices
    DROP COLUMN method,
    DROP COLUMN published,
    DROP COLUMN inputs.fresh_for;
