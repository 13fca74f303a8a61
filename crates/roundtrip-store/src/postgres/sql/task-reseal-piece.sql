-- $1 new bytes, $2 task, $3 old bytes, $4 stream, $5 number.
UPDATE roundtrip_task_chunks SET bytes = $1 WHERE task = $2 AND bytes = $3 AND stream = $4 AND number = $5
