// Prints the failed checks of the conformance results below a directory.
import { globSync, readFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';

for (const file of globSync(`${process.argv[2]}/**/checks.json`)) {
  for (const { id, status, errorMessage } of JSON.parse(readFileSync(file, 'utf8'))) {
    if (status === 'FAILURE' || status === 'WARNING') {
      console.log(`${basename(dirname(file))}: ${status} ${id}: ${errorMessage ?? ''}`);
    }
  }
}
