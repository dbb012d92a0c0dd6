package schemas

// ArchiveClass says what an archive of the log does with the records of a topic.
type ArchiveClass int

const (
	// ArchiveNever leaves a topic out: it holds what is about people, or what another topic holds whole.
	ArchiveNever ArchiveClass = iota
	// ArchiveKept keeps every record: it can be got nowhere again.
	ArchiveKept
	// ArchiveBudget keeps records while the archive is within its bound; the oldest are deleted first.
	ArchiveBudget
)
