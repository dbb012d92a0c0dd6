package ws

import (
	"errors"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	open   prometheus.Gauge
	frames prometheus.Counter
	merged prometheus.Counter
	closed *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "marketlog_stream_connections", Help: "Open price streams."}),
		frames: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "marketlog_stream_frames_total", Help: "Frames encoded for all subscribers; each is encoded once."}),
		merged: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "marketlog_stream_conflated_total", Help: "Rounds merged into what a slow subscriber had not read yet."}),
		closed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "marketlog_stream_closed_total", Help: "Sockets that the server closed, by code."}, []string{"code"}),
	}
	var err error
	if m.open, err = register(registry, m.open); err != nil {
		return nil, err
	}
	if m.frames, err = register(registry, m.frames); err != nil {
		return nil, err
	}
	if m.merged, err = register(registry, m.merged); err != nil {
		return nil, err
	}
	m.closed, err = register(registry, m.closed)
	return m, err
}

// register goes on with the collector of a hub before, when a role begins again in its process.
func register[C prometheus.Collector](registry prometheus.Registerer, c C) (C, error) {
	err := registry.Register(c)
	var before prometheus.AlreadyRegisteredError
	if errors.As(err, &before) {
		if held, ok := before.ExistingCollector.(C); ok {
			return held, nil
		}
	}
	return c, err
}

func (m *metrics) told(frames, merged int) {
	m.frames.Add(float64(frames))
	m.merged.Add(float64(merged))
}

func (m *metrics) close(code int) { m.closed.WithLabelValues(strconv.Itoa(code)).Inc() }
