package decode

import "bytes"

// strict turns JSON as people write it into JSON: a comment from // to the end of the line goes, a bare
// key gets its quotes. All else stays as it is, right or wrong.
func strict(text []byte) []byte {
	out := make([]byte, 0, len(text)+16)
	for i := 0; i < len(text); {
		switch rest := text[i:]; {
		case rest[0] == '"':
			n := quoted(rest)
			out = append(out, rest[:n]...)
			i += n
		case bytes.HasPrefix(rest, []byte("//")):
			n := bytes.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			i += n
		case isWord(rest[0]):
			n := 1
			for n < len(rest) && isWord(rest[n]) {
				n++
			}
			word := rest[:n]
			if bytes.HasPrefix(bytes.TrimLeft(rest[n:], " \t"), []byte(":")) {
				word = append(append([]byte{'"'}, word...), '"')
			}
			out = append(out, word...)
			i += n
		default:
			out = append(out, rest[0])
			i++
		}
	}
	return out
}

// quoted is the length of the string that text begins with, quotes included.
func quoted(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

func isWord(c byte) bool {
	return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
}
