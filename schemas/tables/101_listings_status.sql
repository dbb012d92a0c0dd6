-- +goose Up
-- By what a venue's list says that a market does not trade now; empty if it trades, or the list has it no more.
ALTER TABLE listings ADD COLUMN IF NOT EXISTS status LowCardinality(String) AFTER gone;

-- +goose Down
ALTER TABLE listings DROP COLUMN status;
