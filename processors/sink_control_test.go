package processors_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/shadow"
)

// From the control that prepares a replay up to the one that finishes it, and only in a partition that has read it, rows go
// into the replay's table too. Controls have no mark, whatever was read before.
func TestRowsGoIntoTheTablesOfAReplayWhileItsControlsRequireIt(t *testing.T) {
	const generation = 9
	for _, view := range []struct {
		name, topic, table string
		row                func(partition int32, offset int64, coin string) eventsv1.Marked
		control            func(*eventsv1.Control) eventsv1.Marked
	}{
		{
			schemas.ViewTicks, schemas.TopicTicks, "ticks",
			func(p int32, at int64, coin string) eventsv1.Marked { return tick(p, at, coin) },
			func(c *eventsv1.Control) eventsv1.Marked {
				return &eventsv1.ResolvedRecord{Body: &eventsv1.ResolvedRecord_Control{Control: c}}
			},
		},
		{
			schemas.ViewPrices, schemas.TopicPrices, "prices",
			func(p int32, at int64, coin string) eventsv1.Marked { return price(p, at, coin) },
			func(c *eventsv1.Control) eventsv1.Marked {
				return &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Control{Control: c}}
			},
		},
	} {
		t.Run(view.name, func(t *testing.T) {
			log, producer := newLog(t)
			store, _ := newStore(t)
			if _, err := shadow.Of(store).Create(t.Context(), view.table, generation); err != nil {
				t.Fatal(err)
			}
			s := newScript(t, view.topic, producer)
			control := func(action string) {
				for p := range int32(2) {
					s.write(p, view.control(&eventsv1.Control{Action: action, View: view.name, Generation: generation}), false)
				}
			}
			rows := func(name string) {
				for p := range int32(3) {
					s.write(p, view.row(p, s.offsets[p]+1, fmt.Sprint(name, p)), true)
				}
			}
			rows("before")
			control("prepare")
			rows("within")
			control("finish")
			rows("behind")
			s.flush()
			stop := start(t, &processors.Sink{Topic: s.topic, Log: log, History: store, Logger: quiet(t)})
			s.settled(store)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			s.check(store)
			want := []string{"within0", "within1"}
			if got := coinsIn(t, store, view.table+history.ShadowSuffix(generation)); !slices.Equal(got, want) {
				t.Errorf("in the replay's table: got rows of %v, want of %v", got, want)
			}
		})
	}
}

func coinsIn(t *testing.T, store *history.Store, table string) (coins []string) {
	t.Helper()
	rows, err := store.Conn().Query(t.Context(), "SELECT DISTINCT coin_id FROM "+table+" ORDER BY coin_id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var coin string
		if err := rows.Scan(&coin); err != nil {
			t.Fatal(err)
		}
		coins = append(coins, coin)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return coins
}
