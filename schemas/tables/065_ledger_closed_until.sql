-- +goose Up
-- Of the sink of candles: minutes that ended by this time are closed in the partition and in their table; 1970 where no
-- watermark said so yet.
ALTER TABLE ledger ADD COLUMN IF NOT EXISTS closed_until DateTime('UTC');

-- +goose Down
ALTER TABLE ledger DROP COLUMN closed_until;
