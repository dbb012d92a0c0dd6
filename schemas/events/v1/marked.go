package eventsv1

// Marked is a value of a topic: a derived record, which processors write, or one without marks.
type Marked interface {
	GetMark() *Mark
	SetMark(*Mark)
	GetPulse() *Pulse
	SizeVT() int
	MarshalToSizedBufferVT([]byte) (int, error)
	UnmarshalVT([]byte) error
	// UnmarshalVTUnsafe decodes without a copy: what is decoded holds on to the bytes, which must not change.
	UnmarshalVTUnsafe([]byte) error
}

// SetMark sets what caused the record.
func (r *ResolvedRecord) SetMark(m *Mark) { r.Mark = m }

// SetMark sets what caused the record.
func (r *QuoteRecord) SetMark(m *Mark) { r.Mark = m }

// SetMark sets what caused the record.
func (r *PriceRecord) SetMark(m *Mark) { r.Mark = m }

// SetMark sets what caused the record.
func (r *CandleRecord) SetMark(m *Mark) { r.Mark = m }

// SetMark sets what caused the record.
func (r *DeadRecord) SetMark(m *Mark) { r.Mark = m }

// SetMark sets what caused the record.
func (r *MarketRecord) SetMark(m *Mark) { r.Mark = m }

// SetMark sets what caused the record.
func (r *RateRecord) SetMark(m *Mark) { r.Mark = m }

// SetMark sets what caused the record.
func (r *EarnRecord) SetMark(m *Mark) { r.Mark = m }

// SetMark sets what caused the record.
func (r *DefiRecord) SetMark(m *Mark) { r.Mark = m }

// GetMark is nil: what producers write has no cause in the log.
func (r *RawRecord) GetMark() *Mark { return nil }

// SetMark does nothing.
func (r *RawRecord) SetMark(*Mark) {}

// GetPulse is nil: clocks are what pulses are made of.
func (r *RawRecord) GetPulse() *Pulse { return nil }

// GetMark is nil: what operators write has no cause in the log.
func (r *KeyRecord) GetMark() *Mark { return nil }

// SetMark does nothing.
func (r *KeyRecord) SetMark(*Mark) {}

// GetPulse is nil: keys have no clock.
func (r *KeyRecord) GetPulse() *Pulse { return nil }

// GetMark is nil: what producers write has no cause in the log.
func (r *BackfillRecord) GetMark() *Mark { return nil }

// SetMark does nothing.
func (r *BackfillRecord) SetMark(*Mark) {}

// GetPulse is nil: the past has no clock.
func (r *BackfillRecord) GetPulse() *Pulse { return nil }

// GetMark is nil: what producers write has no cause in the log.
func (r *ReferenceRecord) GetMark() *Mark { return nil }

// SetMark does nothing.
func (r *ReferenceRecord) SetMark(*Mark) {}

// GetPulse is nil: the clocks of sources move none of a fold.
func (r *ReferenceRecord) GetPulse() *Pulse { return nil }

// GetMark is nil: what is counted while answering has no cause in the log.
func (r *UsageRecord) GetMark() *Mark { return nil }

// SetMark does nothing.
func (r *UsageRecord) SetMark(*Mark) {}

// GetPulse is nil: usage has no clock.
func (r *UsageRecord) GetPulse() *Pulse { return nil }

// GetMark is nil: what a process had read has no cause in the log.
func (r *ServedRecord) GetMark() *Mark { return nil }

// SetMark does nothing.
func (r *ServedRecord) SetMark(*Mark) {}

// GetPulse is nil: what was served has no clock.
func (r *ServedRecord) GetPulse() *Pulse { return nil }

// GetMark is nil: what a replay replaces has no cause in the log.
func (r *RestatementRecord) GetMark() *Mark { return nil }

// SetMark does nothing.
func (r *RestatementRecord) SetMark(*Mark) {}

// GetPulse is nil: restatements have no clock.
func (r *RestatementRecord) GetPulse() *Pulse { return nil }

// GetMark is nil: what operators write has no cause in the log.
func (r *CorrectionRecord) GetMark() *Mark { return nil }

// SetMark does nothing.
func (r *CorrectionRecord) SetMark(*Mark) {}

// GetPulse is nil: corrections have no clock.
func (r *CorrectionRecord) GetPulse() *Pulse { return nil }

// After reports whether the mark lies after another in the order of their common input partition:
// by offset, then by index. A nil mark lies before all others.
func (m *Mark) After(other *Mark) bool {
	switch {
	case m == nil:
		return false
	case other == nil:
		return true
	case m.Offset != other.Offset:
		return m.Offset > other.Offset
	default:
		return m.Index > other.Index
	}
}
