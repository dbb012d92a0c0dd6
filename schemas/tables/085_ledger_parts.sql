-- +goose Up
-- The sinks insert some thirty rows a second here, each a part, and parts that were merged away are kept for statements of people that still
-- read them. A start has to look at all of them; these are read at once.
ALTER TABLE ledger MODIFY SETTING old_parts_lifetime = 15;

-- +goose Down
ALTER TABLE ledger RESET SETTING old_parts_lifetime;
