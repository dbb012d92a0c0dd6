-- +goose Up
-- When a source set the rate, 1970 for those that set one a day; and whom it was blended from, if it says.
ALTER TABLE fixings ADD COLUMN IF NOT EXISTS event_time DateTime64(9, 'UTC') AFTER ingest_time,
    ADD COLUMN IF NOT EXISTS providers Array(LowCardinality(String)) AFTER event_time;

-- +goose Down
ALTER TABLE fixings DROP COLUMN event_time, DROP COLUMN providers;
