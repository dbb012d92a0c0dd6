-- Which days of the largest coins are whole, the last week
--
-- Columns: symbol; day; minutes with a candle; live, backfill and import, where they come from; missing; complete_percent, of the minutes of its markets that were compared with the
-- venues' own candles, empty where none was.
-- Right because: a minute without a candle counts as missing whatever the reason, and the day that goes on as far as any coin has come. A day before the instance began has
-- only what was back-filled or imported.
SELECT symbol, day, minutes, live, backfill, import, missing, 100 * complete / nullIf(compared, 0) AS complete_percent
FROM v_completeness_daily
WHERE day > toDate(now()) - 7 AND coin_id IN (SELECT coin_id FROM v_markets WHERE rank BETWEEN 1 AND 10)
ORDER BY symbol, day
