CREATE OR REPLACE VIEW {database}.live_closed
(
    until DateTime('UTC')
)
AS SELECT multiIf(count() = 0, toDateTime('2106-01-01 00:00:00', 'UTC'), count() < {partitions}, toDateTime(0, 'UTC'), min(closed_until)) AS until
FROM {database}.ledger FINAL WHERE sink = 'candles.v1' AND generation = 0
COMMENT 'Up to when live minutes are closed in all partitions, and in their table; only before this may a back-filled candle be shown. Far ahead where there never was a live minute'
