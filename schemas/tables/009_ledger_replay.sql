-- +goose Up
-- The generation of the replay whose shadow tables the sink also writes; 0 is none.
ALTER TABLE ledger ADD COLUMN IF NOT EXISTS replay UInt32;

-- +goose Down
ALTER TABLE ledger DROP COLUMN replay;
