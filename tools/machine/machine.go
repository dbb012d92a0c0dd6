// Package machine reports what a figure or a proof was made on.
package machine

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Describe names the processor, how many cores there are, the memory and the system, as far as the system reports.
func Describe() string {
	words := []string{}
	if cpu := field("/proc/cpuinfo", "model name"); cpu != "" {
		words = append(words, cpu)
	}
	words = append(words, fmt.Sprintf("%d cores", runtime.NumCPU()))
	if memory := Memory(); memory != "" {
		words = append(words, memory)
	}
	return strings.Join(append(words, runtime.GOOS+"/"+runtime.GOARCH), ", ")
}

// Memory is what the machine has, as "24 GB"; empty where the system does not report it.
func Memory() string {
	words := strings.Fields(field("/proc/meminfo", "MemTotal"))
	if len(words) == 0 {
		return ""
	}
	kB, err := strconv.ParseFloat(words[0], 64)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%.0f GB", kB/(1<<20))
}

// field is the first value of a name in a file of lines "name: value".
func field(file, name string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
