package latest

import (
	"context"
	"fmt"
	"maps"
	"sync"
)

// memoryHashes are hashes in this process. They follow the same rules as put.lua, which a test compares.
type memoryHashes struct {
	mu         sync.Mutex
	partitions map[int32]map[string]string
}

func (m *memoryHashes) put(_ context.Context, partition int32, generation uint32, covered Range, fields []fieldValue) (whole bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	hash := m.partitions[partition]
	if hash == nil {
		hash = map[string]string{}
		m.partitions[partition] = hash
	}
	newer := func(f fieldValue) {
		head := head(generation, f.offset)
		if kept, ok := hash[f.name]; !ok || kept[:headSize] < head {
			hash[f.name] = head + string(f.payload)
		}
	}
	for _, f := range fields {
		newer(f)
	}
	kept, ok := hash[nextField]
	if complete := ok && kept[:headSize] >= head(generation, covered.From); !complete && covered.From != 0 {
		return false, nil
	}
	newer(fieldValue{name: nextField, offset: covered.Next})
	return true, nil
}

func (m *memoryHashes) load(_ context.Context, partition int32) (map[string]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.partitions[partition]), nil
}

// head is what a value begins with; values of one field are compared by it.
func head(generation uint32, offset int64) string {
	return fmt.Sprintf("%010d%020d", generation, offset)
}
