// Package export writes datasets of the tables into files that other programs read: one file a UTC day, and of ticks one a day and
// venue, and beside them a manifest that says what each file holds, up to where the log was read, and whose values are in it.
//
// A file in the manifest is whole: it was written under another name, flushed, read back by a reader that shares no code with
// the writer, counted, hashed and renamed, in this order. An export that was ended anywhere goes on when it is asked for again;
// what the manifest has and the disk still holds is not written a second time, and the files equal those of an export that
// was never ended.
package export
