package limits

import (
	"time"

	"github.com/marketlog/marketlog/stream/history/read"
)

// DayUsage is what a budget used on a day.
type DayUsage = read.DayUsage

// Standing is how much of a budget is used in one window.
type Standing struct {
	Scope       string
	Limit, Used int64
	// Reset is when less is used: now for an empty window.
	Reset time.Time
}

// Windows reports how much of a budget is used in each window of its plan, at a time of the limiter's clock.
func (l *Limiter) Windows(name string, plan *Plan, wall time.Time) []Standing {
	if l.shared != nil {
		return l.shared.windows(name, plan, wall)
	}
	now := int64(wall.Sub(l.epoch)) + minute
	s := l.shard(name)
	s.Lock()
	defer s.Unlock()
	b := s.budgets[name]
	if b == nil {
		b = &budget{}
	}
	b.prepare(plan, Charts, wall)
	var list []Standing
	add := func(scope string, limit, used int64, reset time.Time) {
		if limit > 0 {
			list = append(list, Standing{scope, limit, used, reset})
		}
	}
	at := func(t int64) time.Time { return wall.Add(time.Duration(t - now)) }
	add(ScopeMinute, int64(plan.PerMinute), int64(b.minute.used(now)), at(b.minute.frees(now)))
	add(ScopeMonth, plan.PerMonth, b.used, b.monthEnds)
	add(ScopeCharts, int64(plan.ChartsPerMinute), int64(b.charts.used(now)), at(b.charts.frees(now)))
	return list
}

func (s *leaseManager) windows(name string, plan *Plan, wall time.Time) []Standing {
	byScope := map[string]Standing{}
	for _, c := range s.limits(name, plan, Charts, wall) {
		c.mu.Lock()
		now := s.clock()
		used, frees := c.stand(now)
		reset := wall.Add(time.Duration(frees - now))
		if c.width == Month {
			reset = c.ends
		}
		c.mu.Unlock()
		byScope[c.scope] = Standing{c.scope, c.limit, used, reset}
	}
	var list []Standing
	for _, scope := range []string{ScopeMinute, ScopeMonth, ScopeCharts} {
		if standing, ok := byScope[scope]; ok {
			list = append(list, standing)
		}
	}
	return list
}
