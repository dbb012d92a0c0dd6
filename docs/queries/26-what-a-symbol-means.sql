-- What each venue's symbols of bitcoin in dollars mean, and since when
--
-- Columns: venue; symbol; coin_id; quote_id; valid_from; valid_to, empty while it holds.
-- Right because: a symbol is joined by venue and time: base, quote and meaning may change under the same symbol, and two venues may mean two coins by one.
SELECT venue, symbol, coin_id, quote_id, valid_from, valid_to
FROM v_symbology
WHERE coin_id = 'bitcoin' AND quote_id IN ('USD', 'tether', 'usd-coin')
ORDER BY venue, symbol, valid_from
