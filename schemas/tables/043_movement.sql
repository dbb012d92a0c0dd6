-- +goose Up
-- A digest of the values in an answer, 0 without one; and how often a source's values are expected to move, 0 for not.
ALTER TABLE fetches ADD COLUMN IF NOT EXISTS told UInt64 AFTER readings;
ALTER TABLE sources ADD COLUMN IF NOT EXISTS moves_ns Int64 AFTER ingest_time;

-- +goose Down
ALTER TABLE fetches DROP COLUMN told;
ALTER TABLE sources DROP COLUMN moves_ns;
