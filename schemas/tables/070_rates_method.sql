-- +goose Up
-- By which version of the rule a source's word became a rate by the year; rows of before are of the first.
ALTER TABLE rates ADD COLUMN IF NOT EXISTS method UInt32 DEFAULT 1 AFTER apy;
ALTER TABLE rates_now ADD COLUMN IF NOT EXISTS method UInt32 DEFAULT 1 AFTER apy;
ALTER TABLE rates_past ADD COLUMN IF NOT EXISTS method UInt32 DEFAULT 1 AFTER apy;

-- +goose Down
ALTER TABLE rates DROP COLUMN method;
ALTER TABLE rates_now DROP COLUMN method;
ALTER TABLE rates_past DROP COLUMN method;
