SELECT {now} AS now, {started} AS started, {timeline} AS timeline
