-- +goose Up
-- The views that folded back-filled candles when they were read.
DROP VIEW IF EXISTS backfill_fiat;
DROP VIEW IF EXISTS backfill_direct_1m;
DROP VIEW IF EXISTS backfill_direct_1h;
DROP VIEW IF EXISTS backfill_direct_1d;
DROP VIEW IF EXISTS backfill_quotes_1m;
DROP VIEW IF EXISTS backfill_quotes_1h;
DROP VIEW IF EXISTS backfill_quotes_1d;
DROP VIEW IF EXISTS backfill_usd_1m;
DROP VIEW IF EXISTS backfill_usd_1h;
DROP VIEW IF EXISTS backfill_usd_1d;
DROP VIEW IF EXISTS backfill_candles_1m;
DROP VIEW IF EXISTS backfill_candles_1h;
DROP VIEW IF EXISTS backfill_candles_1d;

-- +goose Down
SELECT 1;
