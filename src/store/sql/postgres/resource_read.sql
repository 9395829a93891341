SELECT fence FROM {schema}.resources WHERE resource = $1
