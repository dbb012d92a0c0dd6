package views

// Mean is that of n numbers, of which the sum, the least and the greatest are known. It is within these: rounding would put
// that of three times 0.1 at 0.10000000000000002.
func Mean(sum float64, n int, least, greatest float64) float64 {
	return min(max(sum/float64(n), least), greatest)
}
