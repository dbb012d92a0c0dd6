-- Bitcoin by the hour, a week
--
-- Columns: start of the hour, UTC; open, high, low and close in USD; volume_usd; trades; complete, false while minutes are missing; origin of the minutes.
-- Right because: origin tells hours that were lived through from those that were read afterwards, whose volumes are those of other venues.
SELECT start, open, high, low, close, volume_usd, trades, complete, origin
FROM v_candles_1h
WHERE coin_id = 'bitcoin' AND start > now() - 7 * 86400
ORDER BY start
