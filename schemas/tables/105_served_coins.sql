-- +goose Up
-- The offset in reference.raw.v1 before which the process had read all that sources state of coins; 0 where that was not recorded.
ALTER TABLE served_sources ADD COLUMN IF NOT EXISTS coins Int64 AFTER last;

-- +goose Down
ALTER TABLE served_sources DROP COLUMN coins;
